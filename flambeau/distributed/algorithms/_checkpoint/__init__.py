"""Modules that keep less for backward, under the name of `torch.distributed.algorithms._checkpoint`."""
