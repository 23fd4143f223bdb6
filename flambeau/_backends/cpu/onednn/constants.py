"""Numbers of oneDNN's C interface as of version 3.2; being part of its binary interface, they hold for all of 3.x."""

from __future__ import annotations

import ctypes

MAX_DIMS = 12
Dims = ctypes.c_int64 * MAX_DIMS
"""Sizes, strides and paddings are passed as arrays of this length, of which the first entries count."""


class ExecutionArgument(ctypes.Structure):
    """`dnnl_exec_arg_t`: which argument of a primitive, and the memory object for it."""

    _fields_ = (("argument", ctypes.c_int), ("memory", ctypes.c_void_p))


class Version(ctypes.Structure):
    """The library's version: `dnnl_version_t`."""

    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("patch", ctypes.c_int),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    )


# dnnl_status_t
SUCCESS = 0
OUT_OF_MEMORY = 1
INVALID_ARGUMENTS = 2
UNIMPLEMENTED = 3
STATUS_NAMES = {
    1: "out of memory",
    2: "invalid arguments",
    3: "unimplemented",
    4: "last implementation reached",
    5: "runtime error",
    6: "not required",
    7: "invalid graph",
    8: "invalid graph operation",
    9: "invalid shape",
    10: "invalid data type",
}

# dnnl_data_type_t
F16, BF16, F32, S32, S8, U8 = 1, 2, 3, 4, 5, 6

# dnnl_format_tag_t: the one tag that is used, since all plain layouts are given by their strides
FORMAT_ANY = 1

# dnnl_engine_kind_t, dnnl_stream_flags_t, dnnl_scratchpad_mode_t
CPU = 1
STREAM_IN_ORDER = 1
SCRATCHPAD_USER = 1

# dnnl_cpu_isa_t: the bits of AVX2-VNNI and AVX512-VNNI
ISA_VNNI = 0x8 | 0x40
# that of AVX512-BF16, which AMX has, too
ISA_BFLOAT16 = 0x80

# dnnl_prop_kind_t
FORWARD_TRAINING = 64
BACKWARD = 128

# dnnl_alg_kind_t
CONVOLUTION_DIRECT = 0x1
DECONVOLUTION_DIRECT = 0xA

# dnnl_query_t
QUERY_IMPLEMENTATION = 8
QUERY_ARGUMENT = 255

# arguments of dnnl_primitive_execute
SRC = 1
DST = 17
WEIGHTS = 33
BIAS = 41
SCRATCHPAD = 80
DIFF_SRC = 129
DIFF_DST = 145
DIFF_WEIGHTS = 161
DIFF_BIAS = 169

# The functions that are used: the type of the result, then those of the parameters.
# p: a pointer or a handle, i: int or an enumeration, u: unsigned, z: size_t.
SIGNATURES = {
    "dnnl_version": "p:",
    "dnnl_get_effective_cpu_isa": "i:",
    "dnnl_engine_create": "i:piz",
    "dnnl_engine_destroy": "i:p",
    "dnnl_stream_create": "i:ppu",
    "dnnl_stream_destroy": "i:p",
    "dnnl_primitive_attr_create": "i:p",
    "dnnl_primitive_attr_destroy": "i:p",
    "dnnl_primitive_attr_set_scratchpad_mode": "i:pi",
    "dnnl_memory_desc_create_with_strides": "i:pipip",
    "dnnl_memory_desc_create_with_tag": "i:pipii",
    "dnnl_memory_desc_clone": "i:pp",
    "dnnl_memory_desc_destroy": "i:p",
    "dnnl_memory_desc_equal": "i:pp",
    "dnnl_memory_desc_get_size": "z:p",
    "dnnl_memory_create": "i:pppp",
    "dnnl_memory_destroy": "i:p",
    "dnnl_memory_set_data_handle": "i:pp",
    "dnnl_primitive_desc_query": "i:piip",
    "dnnl_primitive_desc_query_md": "p:pii",
    "dnnl_primitive_desc_destroy": "i:p",
    "dnnl_primitive_create": "i:pp",
    "dnnl_primitive_destroy": "i:p",
    "dnnl_primitive_execute": "i:ppip",
    "dnnl_sgemm": "i:ccnnnfpnpnfpn",
    "dnnl_reorder_primitive_desc_create": "i:pppppp",
    "dnnl_matmul_primitive_desc_create": "i:ppppppp",
    "dnnl_convolution_forward_primitive_desc_create": "i:ppiippppppppp",
    "dnnl_convolution_backward_data_primitive_desc_create": "i:ppippppppppp",
    "dnnl_convolution_backward_weights_primitive_desc_create": "i:ppipppppppppp",
    "dnnl_deconvolution_forward_primitive_desc_create": "i:ppiippppppppp",
}
