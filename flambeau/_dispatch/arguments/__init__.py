"""What happens to the arguments of an op before its kernel sees them: promotion, broadcasting, numbers, autocast."""
