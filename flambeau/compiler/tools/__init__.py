"""Tools that look inside: `explain`, `verify`, `minify`."""
