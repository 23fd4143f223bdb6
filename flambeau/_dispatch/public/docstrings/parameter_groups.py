"""What a parameter means in some functions, where others have one of the same name: see `parameter_docs`.

A key is the parameter's name, a colon, and the functions.
"""

from __future__ import annotations

_GROUPS: dict[str, str] = {
    # arguments without names of their own
    "args: einsum": 'the equation, as in "ij,jk->ik", and one tensor for each of its inputs',
    "args: gru lstm rnn_relu rnn_tanh quantized_gru quantized_lstm": "the other arguments, in the order above",
    "args: celu rrelu selu threshold hardtanh leaky_relu relu": "the arguments of the form that is not in place",
    "kwargs: celu rrelu selu threshold hardtanh leaky_relu relu": "those that are given by name",
    "args: to": "a device, a dtype, a device and a dtype, or a tensor whose device and dtype to take",
    "args: new": "the sizes of a tensor whose elements are not set, or the elements",
    "args: eig lstsq solve symeig": "not used; they exist because PyTorch's signature has them",
    "kwargs: eig lstsq solve symeig": "not used",
    "args: ipu mtia xpu to_padded_tensor": "not used; they exist because PyTorch's signature has them",
    "kwargs: ipu mtia xpu to_padded_tensor": "not used",
    "copy: to": "bool: whether to copy where device and dtype are right already",
    "device: to zeros_like ones_like empty_like full_like rand_like randn_like randint_like new new_zeros new_ones "
    "new_empty new_full new_tensor new_empty_strided": (
        "device, optional: where the result lies; None means where `input` lies"
    ),
    "dtype: to": "dtype, optional: the dtype of the result; None keeps the input's",
    "other: new": "Tensor, optional: a tensor whose memory the new one shares",
    # counts and sizes
    "n: eye": "int: the number of rows",
    "n: randperm": "int: how many numbers",
    "n: diff": "int: how often to take differences",
    "n: matrix_power": "int: the exponent; a negative one needs an invertible matrix",
    "n: polygamma": "int: the order of the derivative",
    "n: lobpcg": "int, optional: the size of the first guess, where none is given",
    "n: fftfreq rfftfreq": "int: the number of samples",
    "n: fft ifft rfft irfft hfft ihfft": (
        "int, optional: the length of the transform; a longer input is cut, a shorter one padded with zeros"
    ),
    "n: chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
    "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
    "shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
    "legendre_polynomial_p": "int or Tensor: the degree",
    "s: fftn fft2 ifftn ifft2 rfftn rfft2 irfftn irfft2 hfftn hfft2 ihfftn ihfft2": (
        "tuple of ints, optional: the length of the transform along each dimension; inputs are cut or padded with zeros"
    ),
    "s: record_stream": "Stream: the stream that uses the memory",
    "k: topk": "int: how many elements to find",
    "k: kthvalue": "int: which element: 1 is the smallest",
    "k: local_response_norm": "float: a constant that is added before the division",
    "q: svd_lowrank pca_lowrank": "int: the rank",
    "sizes: unflatten": "tuple of ints: the sizes that replace the dimension; one of them may be -1",
    "size: nonzero_static": "int: the number of rows of the result",
    "size: unfold unfold_copy": "int: the number of elements of a window",
    "size: interpolate upsample upsample_nearest upsample_bilinear": (
        "int or tuple of ints, optional: the size of the result, without batch and channels"
    ),
    "size: local_response_norm": "int: how many neighbouring channels count",
    "shape: unravel_index": "tuple of ints: the shape of the tensor that the positions are in",
    "dims: permute permute_copy": "int...: the dimensions in their new order",
    "dims: tile": "int...: how many copies along each dimension",
    "dims: tensordot": "int or two lists of ints: how many dimensions to sum over, or which ones",
    "dims: tensorsolve": "tuple of ints, optional: the dimensions of `A` that are moved to its end",
    # numbers
    "alpha: elu celu": "float: the limit of the negative side is -alpha",
    "alpha: hamming_window general_hamming": "float: the constant part of the window",
    "alpha: local_response_norm": "float: the factor of the mean of squares",
    "beta: softplus": "float: how sharply the curve bends; larger ones come closer to relu",
    "beta: smooth_l1_loss": "float: where the loss changes from a square to a line",
    "beta: hamming_window": "float: the factor of the cosine",
    "beta: kaiser_window kaiser": "float: the shape of the window: the larger, the narrower",
    "beta: local_response_norm": "float: the exponent of the divisor",
    "value: addcmul": "Number: the factor of the product",
    "value: addcdiv": "Number: the factor of the quotient",
    "value: threshold": "Number: what replaces elements that do not exceed the threshold",
    "threshold: threshold": "float: elements that do not exceed it are replaced",
    "threshold: softplus": "float: above it the function is the identity",
    "p: bernoulli": "float, optional: one probability for all elements, instead of those in `input`",
    "p: mvlgamma multigammaln": "int: the dimension",
    "p: multi_margin_loss": "int: the exponent, 1 or 2",
    "p: dropout feature_dropout alpha_dropout feature_alpha_dropout native_dropout dropout1d dropout2d dropout3d": (
        "float: the probability with which an element, or a channel, is dropped"
    ),
    "scale: scaled_dot_product_attention": "float, optional: the factor of the scores; None means 1 / sqrt(E)",
    # tensors
    "weight: mse_loss l1_loss huber_loss": "Tensor, optional: what each element counts for",
    "weight: binary_cross_entropy binary_cross_entropy_with_logits": "Tensor, optional: a factor of each loss",
    "weight: linear_cross_entropy multi_margin_loss multilabel_soft_margin_loss": (
        "Tensor, optional: a weight for each class"
    ),
    "weight: histogram histogramdd": "Tensor, optional: what each element or point counts for",
    "weight: prelu": "Tensor: the slope of the negative side, one number or one for each channel",
    "weight: rms_norm native_layer_norm": "Tensor, optional: a factor for each normalized element",
    "weight: native_group_norm native_batch_norm instance_norm quantized_batch_norm": (
        "Tensor, optional: a factor for each channel"
    ),
    "weight: bilinear": "Tensor: (out_features, in1_features, in2_features)",
    "weight: conv_tbc": "Tensor: the filters, (kernel, in_channels, out_channels)",
    "weight: convolution mkldnn_convolution": "Tensor: the filters, as `conv1d` to `conv3d` take them",
    "weight: embedding_bag": "Tensor: the table, (number of rows, features)",
    "index: select select_copy select_scatter": "int: the position",
    "index: take put": "Tensor: positions in the flat tensor, as integers",
    "indices: embedding embedding_bag": "Tensor: the numbers of the rows",
    "indices: hsplit vsplit dsplit": "int or tuple of ints: the number of parts, or the positions at which to cut",
    "indices: sparse_coo_tensor": "Tensor: the coordinates, one column for each value",
    "indices: max_unpool1d max_unpool2d max_unpool3d": "Tensor: the positions that the pooling returned",
    "values: sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor "
    "sparse_compressed_tensor": "Tensor: the elements that are stored",
    "input2: cholesky_solve": "Tensor: the Cholesky factor of A",
    "input2: orgqr ormqr": "Tensor: the factors `tau` of the reflectors",
    "x: trapezoid trapz cumulative_trapezoid": "Tensor, optional: where the samples are",
    "x: vecdot": "Tensor: the first vectors",
    "y: vecdot": "Tensor: the second vectors",
    "tensor: dot": "Tensor: the second vector",
    "a: general_cosine": "sequence of floats: the coefficients",
    # variants
    "mode: embedding_bag": 'str or int: "sum", "mean" or "max"; of `torch.embedding_bag` 0, 1 or 2',
    "mode: qr": 'str: "reduced", "complete" or "r", which gives R alone',
    "mode: grid_sample": 'str: "bilinear", "nearest" or "bicubic"',
    "mode: interpolate upsample": (
        'str: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area", by dimensions'
    ),
    "mode: pad": 'str: "constant", "reflect", "replicate" or "circular"',
    "mode: hash_tensor": "int: 0 is the only one",
    "mode: mkldnn_rnn_layer": "int: which kind of recurrent layer",
}

MEANINGS = {
    f"{function}.{parameter}": meaning
    for parameter, functions, meaning in ((*key.split(": "), meaning) for key, meaning in _GROUPS.items())
    for function in functions.split()
}
"""`function.parameter` -> its type and what it means."""
