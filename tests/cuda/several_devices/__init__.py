"""Programs for machines with several GPUs; `../test_several_devices.py` runs them on simulated ones."""
