"""Attention, recurrent and linear layers on the device."""
