"""Which tests a PyTorch older than 2.13 does not pass, and why: there 2.13's behaviour, the specification, is new.

An entry is a test, or the beginning of the name of one with its parameters. Where such a PyTorch is at hand they must
fail: see `tests/conftest.py`.
"""

from __future__ import annotations

DIFFERS_BEFORE_2_13: dict[str, tuple[str, ...]] = {
    "two-byte numbers are drawn as float32": (
        "tests/_core/random/test_sampling.py::test_uniform[bounds0-torch.float16]",
        "tests/_core/random/test_sampling.py::test_uniform[bounds0-torch.bfloat16]",
        "tests/_core/random/test_sampling.py::test_uniform[bounds1-torch.float16]",
        "tests/_core/random/test_sampling.py::test_uniform[bounds1-torch.bfloat16]",
        "tests/_core/random/test_sampling.py::test_uniform[bounds2-torch.float16]",
        "tests/_core/random/test_sampling.py::test_uniform[bounds2-torch.bfloat16]",
        "tests/_core/random/test_sampling.py::test_uniform[bounds4-torch.float16]",
        "tests/_core/random/test_sampling.py::test_normal[moments0-torch.float16]",
        "tests/_core/random/test_sampling.py::test_normal[moments0-torch.bfloat16]",
        "tests/_core/random/test_sampling.py::test_normal[moments1-torch.float16]",
        "tests/_core/random/test_sampling.py::test_normal[moments1-torch.bfloat16]",
        "tests/_core/random/test_sampling.py::test_normal[moments2-torch.float16]",
        "tests/_core/random/test_sampling.py::test_normal[moments2-torch.bfloat16]",
        "tests/tensor/test_complex_half.py::test_random_numbers",
        "tests/names/test_namespaces.py::test_numbers_for_tests",
        "tests/conformance/test_operators.py::test_first_samples[nn.functional.fractional_max_pool3d]",
        "tests/conformance/test_operators.py::test_first_samples[normal.in_place]",
        "tests/conformance/test_operators.py::test_first_samples[rand_like]",
        "tests/conformance/test_operators.py::test_first_samples[randn]",
        "tests/conformance/test_operators.py::test_first_samples[randn_like]",
        "tests/conformance/test_operators.py::test_first_samples[uniform]",
    ),
    "trunc_normal_ draws by another method": (
        "tests/nn/test_init.py::test_trunc_normal",
        "tests/nn/test_init.py::test_generators",
        "tests/training/test_attention.py::test_vision_transformer",
    ),
    "grid_sample has a second derivative": ("tests/_ops/nn/image/test_grid_sample.py::test_samples_and_derivatives",),
    "aminmax, nextafter and narrow_copy have derivatives": (
        "tests/_ops/reduce/test_extremes.py::test_aminmax_derivative",
        "tests/_ops/shape/test_view.py::test_values_and_two_derivatives[narrow_copy]",
        "tests/_ops/test_elementwise_families.py::test_two_operands[a.nextafter(b)]",
        "tests/autograd/test_derivatives.py::test_real[x.aminmax().max]",
        "tests/autograd/test_graph.py::test_node_name_and_edges[x.aminmax().min]",
    ),
    "normalisation layers take bias=, and print it": (
        "tests/ao/test_reference_layers.py::test_parts_by_name",
        "tests/nn/test_initialisation.py::test_same_seed_same_layer[BatchNorm",
        "tests/nn/test_initialisation.py::test_same_seed_same_layer[GroupNorm",
        "tests/nn/test_initialisation.py::test_same_seed_same_layer[InstanceNorm",
        "tests/nn/test_initialisation.py::test_same_seed_same_layer[LayerNorm",
        "tests/nn/test_initialisation.py::test_same_seed_same_layer[SyncBatchNorm",
        "tests/nn/test_initialisation.py::test_same_seed_same_lazy_layer[LazyBatchNorm",
        "tests/nn/test_initialisation.py::test_same_seed_same_lazy_layer[LazyInstanceNorm",
        "tests/nn/test_layers.py::test_class_is_found_and_called_as_in_pytorch[batchnorm-",
        "tests/nn/test_layers.py::test_class_is_found_and_called_as_in_pytorch[instancenorm-",
        "tests/nn/test_layers.py::test_class_is_found_and_called_as_in_pytorch[normalization-GroupNorm]",
        "tests/nn/test_layers.py::test_settings_and_printing[<lambda>11]",
        "tests/nn/test_layers.py::test_sync_batch_norm",
        "tests/nn/test_module_database.py::test_copies[BatchNorm",
        "tests/nn/test_module_database.py::test_copies[GroupNorm",
        "tests/nn/test_module_database.py::test_copies[InstanceNorm",
        "tests/nn/test_module_database.py::test_copies[LayerNorm",
        "tests/nn/test_module_database.py::test_copies[Transformer",
        "tests/nn/test_module_database.py::test_forward_and_gradients[BatchNorm",
        "tests/nn/test_module_database.py::test_forward_and_gradients[GroupNorm",
        "tests/nn/test_module_database.py::test_forward_and_gradients[InstanceNorm",
        "tests/nn/test_module_database.py::test_forward_and_gradients[LayerNorm",
        "tests/nn/test_module_database.py::test_forward_and_gradients[Transformer",
        "tests/nn/test_module.py::test_copies_and_pickles",
        "tests/nn/test_module.py::test_printing",
        "tests/nn/test_transformer.py::test_activations",
        "tests/nn/test_transformer.py::test_layers",
        "tests/nn/test_transformer.py::test_refused_and_warned",
        "tests/nn/test_transformer.py::test_whole",
    ),
    "linear_cross_entropy is new": (
        "tests/_ops/nn/loss/test_linear_loss.py::test_chunks_by_rule",
        "tests/_ops/nn/loss/test_linear_loss.py::test_more_dimensions_and_probabilities",
        "tests/_ops/nn/loss/test_linear_loss.py::test_values_and_gradients",
        "tests/_ops/nn/loss/test_linear_loss.py::test_wrong_input",
        "tests/nn/test_initialisation.py::test_same_seed_same_layer[LinearCrossEntropyLoss]",
        "tests/nn/test_layers.py::test_settings_and_printing[<lambda>27]",
    ),
    "interpolation with Lanczos's filter is new": ("tests/_ops/nn/image/test_interpolate.py::test_filters[lanczos]",),
    "Function.apply takes keyword arguments": ("tests/autograd/test_function.py::test_keyword_arguments",),
    "thread_safe_generator and WorkerInfo.rng are new": (
        "tests/_ops/random/test_draws.py::test_forked_states",
        "tests/utils/data/test_dataloader.py::test_worker_seeds",
    ),
    "gamma numbers are drawn on the meta device": (
        "tests/_ops/random/test_draws.py::test_the_meta_device_draws_nothing",
    ),
    "float8_e4m3fn saturates": (
        "tests/tensor/test_small_dtypes.py::test_float8_from_other_types[float8_e4m3fn]",
        "tests/tensor/test_small_dtypes.py::test_rounding_to_float8[float8_e4m3fn-",
    ),
    "products of float8 take scales of rows and columns": (
        "tests/names/test_rarer_names.py::test_products_with_scales",
        "tests/conformance/test_operators.py::test_first_samples[torch._scaled_mm",
        "tests/tensor/test_small_dtypes.py::test_scaled_products",
    ),
    "_foreach_mm and _foreach_clone are new": (
        "tests/_ops/pointwise/test_foreach.py::test_errors",
        "tests/_ops/pointwise/test_foreach.py::test_every_name_exists",
        "tests/_ops/pointwise/test_foreach.py::test_ways_to_give_operands",
    ),
    "const_data_ptr and the short names of dtypes are new": (
        "tests/names/test_top_level.py::test_dtypes_of_packed_data",
        "tests/names/test_top_level.py::test_rare_methods",
    ),
    "names are new": (
        "tests/autograd/test_function.py::test_what_a_node_says_of_itself",
        "tests/compiler/test_api.py::test_a_compiled_function_in_a_file",
        "tests/distributed/test_elastic_agent.py::test_what_an_agent_knows",
        "tests/modules/test_further_tools.py::test_graphs_cut_by_tables",
        "tests/names/test_further_names.py::test_other_parameters_in_an_optimizer",
        "tests/names/test_further_names.py::test_strides_of_gradients",
        "tests/fx/test_more_passes.py::test_questions_about_sizes",
        "tests/fx/test_more_passes.py::test_types_of_values",
        "tests/jit/test_types.py::test_archives_record_by_record",
        "tests/jit/test_types.py::test_tags_and_switches",
        "tests/names/test_rarer_names.py::test_older_names_of_autograd",
        "tests/names/test_rarer_names.py::test_rearrange",
    ),
    "integers that vary print as such": ("tests/names/test_rarer_names.py::test_numbers_that_vary",),
    "a policy of checkpoints is not asked again while recomputing": (
        "tests/names/test_rarer_names.py::test_checkpoints_that_keep_some_results",
    ),
    "blocks of masks are counted apart where they are full, and slices have sizes of their own": (
        "tests/nn/test_flex_attention.py::test_block_masks",
        "tests/nn/test_flex_attention.py::test_masks_from_blocks",
        "tests/nn/test_flex_attention.py::test_slices_and_other_lengths",
    ),
    "other operators, samples, names and signatures": (
        "tests/conformance/test_operators.py::test_page_is_made_from_the_data",
        "tests/signatures/test_signatures.py::test_no_other_difference_than_the_known_ones",
        "tests/signatures/test_signatures.py::test_the_list_of_differences_only_shrinks",
        "tests/signatures/test_signatures.py::test_the_page_says_what_the_comparison_gives",
        "tests/test_stubs.py::test_the_generated_files_are_up_to_date[schemas.py]",
        "tests/wrong_calls/test_wrong_calls.py::test_nothing_new_differs",
    ),
    "dimensions have no names": (
        "tests/tensor/test_refusals.py::test_dimensions_are_ints[0-all]",
        "tests/tensor/test_refusals.py::test_dimensions_are_ints[0-any]",
        "tests/tensor/test_refusals.py::test_dimensions_are_ints[0-cumsum]",
        "tests/tensor/test_refusals.py::test_dimensions_are_ints[0-logsumexp]",
        "tests/tensor/test_refusals.py::test_dimensions_are_ints[0-mean]",
        "tests/tensor/test_refusals.py::test_dimensions_are_ints[0-prod]",
        "tests/tensor/test_refusals.py::test_dimensions_are_ints[0-sum]",
        "tests/tensor/test_refusals.py::test_what_is_refused[a number for a flag of a factory]",
        "tests/tensor/test_refusals.py::test_factories_take_no_names[empty]",
        "tests/tensor/test_refusals.py::test_factories_take_no_names[full]",
        "tests/tensor/test_refusals.py::test_factories_take_no_names[ones]",
        "tests/tensor/test_refusals.py::test_factories_take_no_names[rand]",
        "tests/tensor/test_refusals.py::test_factories_take_no_names[randn]",
        "tests/tensor/test_refusals.py::test_factories_take_no_names[zeros]",
        "tests/tensor/test_errors.py::test_wrong_arguments[gather list]",
        "tests/tensor/test_errors.py::test_wrong_arguments[sum text]",
        "tests/tensor/test_interchange.py::test_names_that_the_array_api_needs",
        "tests/test_bad_input.py::test_bad_input",
    ),
    "functions of one's own take keyword arguments": (
        "tests/autograd/test_function.py::test_arguments_that_are_left_out",
    ),
    "errors are of other kinds, or in other words": (
        "tests/_ops/create/test_constants.py::test_asarray",
        "tests/_ops/linalg/test_systems.py::test_integers",
        "tests/_ops/nn/image/test_interpolate.py::test_errors",
        "tests/_ops/nn/loss/test_margin_loss.py::test_wrong_input[multi_margin_loss(x, labels[:2])",
        "tests/_ops/nn/test_normalization.py::test_errors",
        "tests/autograd/test_grad.py::test_errors_about_arguments",
        "tests/autograd/test_saved_tensors.py::test_register_hooks_pack_changes_input",
        "tests/distributions/test_validation.py::test_parameters[Mixture component]",
        "tests/nn/test_state_dict.py::test_load_state_dict_hooks",
        "tests/optim/test_swa_utils.py::test_wrong_options",
        "tests/names/test_devices.py::test_functions_answer_as_pytorchs[mtia]",
        "tests/tensor/test_refusals.py::test_what_is_refused[a number for a flag of a masked sum]",
        "tests/tensor/test_refusals.py::test_what_is_refused[a stride beyond 32 bits]",
        "tests/tensor/test_refusals.py::test_what_is_refused[a stride of means beyond 32 bits]",
        "tests/utils/data/test_datapipes.py::test_shares_and_settings",
    ),
}

WARNED_SINCE_2_13 = frozenset(("UserWarning: torch.quantize_per_tensor, torch.quantize_per_channel and other",))
"""Beginnings of warnings that an older PyTorch does not give: there nobody's are compared."""

DIFFERS_WITH_CUDA: dict[str, tuple[str, ...]] = {
    "it speaks of a missing driver, not of a build without CUDA": (
        "tests/names/test_devices.py::test_functions_answer_as_pytorchs[accelerator]",
        "tests/names/test_devices.py::test_functions_answer_as_pytorchs[cuda",
        "tests/distributed/test_rarer_names.py::test_copies_of_states",
        "tests/modules/test_further_tools.py::test_ranges_for_profilers_of_vendors",
        "tests/names/test_further_names.py::test_plans_of_transforms_without_a_gpu",
        "tests/names/test_top_level.py::test_storages_of_one_dtype",
        "tests/nn/test_module.py::test_conversions",
        "tests/tensor/test_interchange.py::test_arguments",
    ),
    "it finds the compiler of kernels that was installed with it": (
        "tests/names/test_further_names.py::test_operators_and_compilers",
    ),
    "it has further names": ("tests/names/test_page.py::test_the_page_and_the_list_are_true",),
    "its RNNs are cuDNN's": ("tests/amp/test_rules.py::test_every_listed_op_has_a_rule[cuda]",),
}
"""Which tests a PyTorch that was built with CUDA does not pass: the specification is the one for processors alone."""


def names(entry: str, test: str) -> bool:
    """Whether an entry means the test with this name."""
    return test.startswith(entry) if "[" in entry else test.split("[", maxsplit=1)[0] == entry


def reason_to_fail(test: str, *, older: bool, with_cuda: bool) -> str | None:
    """Why a PyTorch that is older than 2.13, or built with CUDA, does not pass a test; None: it does."""
    for applies, kind, table in (
        (older, "since PyTorch 2.13", DIFFERS_BEFORE_2_13),
        (with_cuda, "PyTorch with CUDA", DIFFERS_WITH_CUDA),
    ):
        for reason, entries in table.items() if applies else ():
            if any(names(entry, test) for entry in entries):
                return f"{kind}: {reason}"
    return None
