"""A tensor beside Python, other libraries and its own memory: operators, protocols, conversions, copies."""
