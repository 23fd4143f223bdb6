"""Programs with streams, events, copies and graphs on devices whose streams run out of order, and planted races."""
