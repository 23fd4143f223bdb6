"""What all ops share: how they are declared, run, recorded, published and overridden."""
