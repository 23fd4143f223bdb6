"""Pictures of memory, under the names of `torch.utils.viz`: they are of CUDA's memory, and there is none."""
