"""Writes random models as libraries write them, and programs that use them: configurations, outputs with attributes,
caches, flags, hooks, and loops that train, evaluate and generate with sizes that change.
"""

from __future__ import annotations

from .program import Program
from .writer import Writer

_PRELUDE = """\
import collections, contextlib, copy, dataclasses, functools, math, types, typing
torch.set_default_dtype(torch.float64)
@dataclasses.dataclass
class Config:
    width: int = 4
    heads: int = 2
    layers: int = 2
    drop: float = 0.0
    act: str = "gelu"
    use_cache: bool = False
    scale: typing.Optional[float] = None
    extras: dict = dataclasses.field(default_factory=dict)
class Output(collections.OrderedDict):
    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None:
                super().__setitem__(field.name, getattr(self, field.name))
    def __getitem__(self, key):
        return dict(self.items())[key] if isinstance(key, str) else tuple(self.values())[key]
    def to_tuple(self):
        return tuple(self[key] for key in self.keys())
@dataclasses.dataclass
class ModelOutput(Output):
    loss: typing.Any = None
    logits: typing.Any = None
    hidden: typing.Any = None
    cache: typing.Any = None
Pair = collections.namedtuple("Pair", "logits hidden")
class Cache:
    def __init__(self):
        self.keys, self.seen = [], 0
    def update(self, new, index):
        if index == 0:
            self.seen += new.shape[1]
        if len(self.keys) <= index:
            self.keys.append(new)
        else:
            self.keys[index] = torch.cat([self.keys[index], new], dim=1)
        return self.keys[index]
ACTIVATIONS = {"gelu": F.gelu, "relu": torch.relu, "silu": nn.SiLU(), "tanh": torch.tanh}
def masked(scores, length, past=0):
    rows = torch.arange(length)[:, None] + past
    return scores.masked_fill(rows < torch.arange(scores.shape[-1])[None], float("-inf"))"""

_ATTENTIONS = (
    "F.scaled_dot_product_attention(q, k, k, is_causal=q.shape[-2] == k.shape[-2] and q.shape[-2] > 1)",
    "masked(q @ k.mT / math.sqrt(q.shape[-1]), q.shape[-2], k.shape[-2] - q.shape[-2]).softmax(-1) @ k",
    "torch.einsum('bhij,bhjd->bhid', (q @ k.transpose(-2, -1) * self.scaling).softmax(dim=-1), k)",
    "F.dropout((q @ k.mT).softmax(-1), p=self.config.drop, training=self.training) @ k",
)
_NORMS = ("nn.LayerNorm(width)", "nn.RMSNorm(width)", "nn.LayerNorm(width, bias=False)", "nn.Identity()", "Gain(width)")
_ATTRIBUTES = (
    *('self.register_buffer("calls", torch.zeros(()), persistent=False)', "self.gradient_checkpointing = False"),
    *("self.last = None", "self.names = [str(each) for each in range(config.layers)]", "self.limit = 3"),
    'self.register_buffer("positions", torch.arange(16)[None])',
)
_BEFORE = (
    *(
        "x = x + self.embed.weight[:1]",
        "x = x * math.sqrt(self.config.width)",
        "x = x + torch.arange(x.shape[1])[:, None] / 8",
    ),
    *(
        "x = x * self.config.extras.get('factor', 1.0)",
        "x = x.clone()",
        "x = F.dropout(x, self.config.drop, self.training)",
    ),
    *(
        "if self.config.scale is not None: x = x * self.config.scale",
        "x = x + rotary(x.shape[1], x.shape[-1], x.dtype)",
    ),
    *(
        "past = 0 if cache is None else cache.seen",
        "assert x.dim() == 3, f'{x.shape} is not three'",
        "x = x.to(self.head.weight.dtype)",
    ),
    *("with torch.no_grad(): level = x.abs().mean()", "x = x / (1e-6 + x.detach().abs().amax(-1, keepdim=True))"),
    *(
        "if (x.shape[1] % 2) == 1: x = F.pad(x, (0, 0, 0, 1))[:, :-1]",
        "x = torch.utils.checkpoint.checkpoint(self.norm, x, use_reentrant=False)",
    ),
    *(
        "with torch.autocast('cpu', enabled=False): x = x.double() * 1",
        "mask = kwargs.pop('mask', None); x = x if mask is None else x * mask[..., None]",
    ),
    *("x = torch.stack([layer_scale * x for layer_scale in (0.5, 0.25)]).sum(0)", "x = self.blocks['first'](x)"),
)
_AFTER = (
    *(
        "self.last = x.detach()",
        "self.last = x.shape",
        "self.calls += 1",
        "x = x[:, -1:] if self.config.extras.get('only_last') else x",
    ),
    *(
        "x = self.norm(x)",
        "x = x.contiguous().view(x.shape[0], -1, self.config.width)",
        "x = x.flatten(0, 1).unflatten(0, (-1, x.shape[1]))",
    ),
    *(
        "x = x + sum(p.sum() * 0 for p in self.parameters())",
        "hidden = hidden + (x,)",
        "x = self.blocks['last'](x) + x",
    ),
    *(
        "x = torch.where(torch.isfinite(x), x, torch.zeros_like(x))",
        "x = x - x.mean((0, 1), keepdim=True)",
        "x = x.permute(0, 2, 1).permute(0, 2, 1)",
    ),
    *(
        "if self.training and x.requires_grad: x.register_hook(lambda grad: grad * 0.5)",
        "x = x * (0.9 if self.training else 1.0)",
    ),
)
_IN_LOOP = (
    *(
        "hidden = hidden + (x,)",
        "if output_hidden: hidden += (x.detach(),)",
        "if self.training and index == self.limit: continue",
    ),
    *(
        "if index in self.config.extras.get('skip', ()): continue",
        "x = layer(x, cache=cache, index=index)[0] * 0.5 + x",
    ),
    *("if self.config.extras.get('early') == index: break", "x = x + 0.1 * index", "x = getattr(self, 'norm')(x)"),
    *(
        "x = functools.partial(layer, cache=None)(x)[0]",
        "x = x * float(self.names[0] == '0')",
        "x, _ = layer(x, index=index)",
    ),
)
_BREAKS = (
    *(
        "print(end='')",
        "if x.abs().max() > 1e6: x = x / 2",
        "value = float(x.detach().sum())",
        "self.counter = getattr(self, 'counter', 0) + 1",
    ),
    *("x = torch.from_numpy(x.detach().numpy() * 1) + x", "import random; random.random()", "torch.manual_seed(3)"),
    *("self.log.append(x.shape[1])", "x = stop_here(x)"),
)
_RETURNS = (
    *(
        "ModelOutput(loss=loss, logits=logits, hidden=hidden or None, cache=cache)",
        "ModelOutput(loss=loss, logits=logits)",
    ),
    *(
        "ModelOutput(loss=loss, logits=logits).to_tuple()",
        "(loss, logits) if loss is not None else (logits,)",
        "Pair(logits, hidden)",
    ),
    *(
        "{'logits': logits, 'loss': loss, 'n': logits.shape[1]}",
        "types.SimpleNamespace(logits=logits, loss=loss)",
        "logits",
    ),
    *("[logits, hidden, cache]", "ModelOutput(logits=logits, hidden=[each for each in hidden])"),
)
_CHANGES = (
    *("model.eval()", "model.train()", "config.extras['factor'] = 2.0", "config.scale = 0.5"),
    *("config.extras['skip'] = (0,)", "model.head.weight.requires_grad_(False)"),
    *("model.layers[0].requires_grad_(False)", "config.extras['early'] = 1", "config.drop = 0.5"),
    *("model.layers.append(Layer(config))", "del model.layers[-1]"),
    *("model.layers[0] = copy.deepcopy(model.layers[-1])", "model.norm = nn.Identity()"),
    *("model.load_state_dict(copy.deepcopy(model.state_dict()))", "config.act = 'relu'"),
    *("model.layers[0].act = torch.sigmoid", "optimizer.param_groups[0]['lr'] = 0.01"),
    "model.layers[0].register_forward_hook(lambda module, given, result: (result[0] * 0.5, *result[1:]))",
    *("model.head.weight = model.embed.weight", "torch.nn.utils.parametrizations.weight_norm(model.head)"),
    *("model.head = nn.Linear(4, 7, bias=False)", "ACTIVATIONS['gelu'] = torch.sin", "model.limit = 0"),
    "with torch.no_grad(): model.head.weight.mul_(0.9)",
    "model.embed.weight.data = model.embed.weight.data * 0.5",
    *("model.config = dataclasses.replace(config, act='tanh')", "model.float(); model.double()"),
    *("model.last = None", "model.zero_grad(set_to_none=False)"),
    "model.layers[0].forward = types.MethodType(lambda self, x, **kw: (x * 2, None), model.layers[0])",
    *("torch.set_grad_enabled(turn % 2 == 0)", "model.head.bias = nn.Parameter(torch.zeros(7))"),
    "model.head.weight.grad = None",
)  # fmt: skip
_CONTEXTS = (
    *("contextlib.nullcontext()",) * 6,
    *(
        "torch.no_grad()",
        "torch.inference_mode()",
        "torch.autocast('cpu', dtype=torch.bfloat16)",
        "torch.enable_grad()",
    ),
    *("torch.autocast('cpu', dtype=torch.bfloat16, enabled=turn % 2 == 0)", "torch.set_grad_enabled(turn % 3 != 0)"),
    *("torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)", "torch.random.fork_rng()"),
)


class _Models(Writer):
    def write(self) -> Program:
        self.line(_PRELUDE)
        self._breaks = self.chance(0.25)
        self.layer()
        self.model()
        self.line(
            f"config = Config(layers={self.pick((1, 2, 3))}, heads={self.pick((1, 2, 4))}, "
            f"drop={self.pick((0.0, 0.0, 0.2))}, act={self.pick(('gelu', 'relu', 'silu', 'tanh'))!r}, "
            f"use_cache={self.pick((True, False))})"
        )
        self.line("torch.manual_seed(1)\nmodel = Model(config)")
        if self.chance(0.3):
            self.line("model.head.weight = model.embed.weight")
        self.line(f"optimizer = torch.optim.{self.pick(('SGD', 'AdamW', 'SGD'))}(model.parameters(), lr=0.05)")
        style = self.pick(("net = compile(model)",) * 4 + ("net = model; model.forward = compile(model.forward)",))
        self.line(self.pick((style, style, "net = model\nmodel.layers[0] = compile(model.layers[0])")))
        if self.chance(0.3):
            self.generation()
        self.loop()
        return self.program()

    def some(self, options: tuple[str, ...], most: int, depth: int) -> None:
        for text in self.random.sample(options, self.random.randint(0, most)):
            self.line(text, depth)

    def layer(self) -> None:
        self.line(
            "class Gain(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
            "        self.weight = nn.Parameter(torch.ones(width))\n    def forward(self, x):\n"
            "        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)\n"
            "@functools.lru_cache(maxsize=4)\ndef rotary(length, width, dtype):\n"
            "    return torch.outer(torch.arange(length, dtype=dtype), torch.ones(width, dtype=dtype)).sin()\n"
            "@torch.compiler.disable\ndef stop_here(x):\n    return x * 1"
        )
        self.line("class Layer(nn.Module):\n    def __init__(self, config):")
        self.line("super().__init__()\nself.config, width = config, config.width", 2)
        self.line("self.scaling = (width // config.heads) ** -0.5", 2)
        self.line("self.q = nn.Linear(width, width, bias=False)\nself.kv = nn.Linear(width, width)", 2)
        self.line(f"self.up = nn.Linear(width, 8)\nself.down = nn.Linear(8, width)\nself.norm = {self.pick(_NORMS)}", 2)
        self.line("self.act = ACTIVATIONS[config.act]", 2)
        self.line("def split(self, x):", 1)
        self.line("return x.view(*x.shape[:-1], self.config.heads, -1).transpose(1, 2)", 2)
        self.line("def forward(self, x, cache=None, index=0, **kwargs):", 1)
        self.line("y = self.norm(x)\nq, k = self.split(self.q(y)), self.kv(y)", 2)
        self.line("if cache is not None: k = cache.update(k, index)", 2)
        self.line(f"k = self.split(k)\nfound = {self.pick(_ATTENTIONS)}", 2)
        self.line("x = x + found.transpose(1, 2).reshape(x.shape)", 2)
        self.line(
            self.pick(
                (
                    "x = x + self.down(self.act(self.up(x)))",
                    "x = self.down(ACTIVATIONS[self.config.act](self.up(x))).add_(x)",
                )
            ),
            2,
        )
        self.line("return x, None", 2)

    def model(self) -> None:
        self.line("class Model(nn.Module):\n    def __init__(self, config):")
        self.line("super().__init__()\nself.config, width, self.log = config, config.width, []", 2)
        self.line(
            "self.embed = nn.Embedding(7, width)\n"
            "self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))",
            2,
        )
        self.line(
            f"self.norm = {self.pick(_NORMS)}\nself.head = nn.Linear(width, 7{self.pick(('', ', bias=False'))})", 2
        )
        self.line(
            "last = nn.Sequential(nn.Linear(width, width), nn.Tanh())\n"
            "self.blocks = nn.ModuleDict({'first': nn.Linear(width, width), 'last': last})",
            2,
        )
        for each in _ATTRIBUTES:
            self.line(each, 2)
        self.line("def forward(self, tokens=None, labels=None, cache=None, output_hidden=False, **kwargs):", 1)
        self.line("x, hidden, loss = self.embed(tokens), (), None", 2)
        self.line("if cache is None and self.config.use_cache and not self.training: cache = Cache()", 2)
        self.some(_BEFORE, 4, 2)
        if self._breaks and self.chance(0.4):
            self.line(self.pick(_BREAKS), 2)
        self.line(
            self.pick(
                (
                    "for index, layer in enumerate(self.layers):",
                    "for index, layer in enumerate(self.layers[: self.config.layers]):",
                )
            ),
            2,
        )
        self.some(_IN_LOOP, 2, 3)
        if self._breaks and self.chance(0.3):
            self.line(self.pick(_BREAKS), 3)
        self.line(
            self.pick(("x = layer(x, cache=cache, index=index, **kwargs)[0]", "x, *_ = layer(x, cache, index)")), 3
        )
        if self._breaks:
            self.line(self.pick(_BREAKS), 2)
        self.some(_AFTER, 4, 2)
        self.line("logits = self.head(x)\nif labels is not None:", 2)
        self.line(
            self.pick(
                (
                    "loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0)",
                    "loss = nn.CrossEntropyLoss()(logits[:, :-1].reshape(-1, 7), labels[:, 1:].reshape(-1))",
                    "loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), reduction='sum') / 9",
                )
            ),
            3,
        )
        self.line(f"return {self.pick(_RETURNS)}", 2)

    def generation(self) -> None:
        self.line("model.eval()\ncache = Cache()\ntokens = torch.tensor([[1, 2, 3]])\nwith torch.no_grad():")
        self.line(f"for _ in range({self.pick((4, 12))}):", 1)
        self.line(
            "found = net(tokens, cache=cache)\n"
            "see(found if not isinstance(found, types.SimpleNamespace) else found.logits)",
            2,
        )
        self.line("logits = first_of(found)\ntokens = logits[:, -1:].argmax(-1)", 2)
        self.lines[self.lines.index("model.eval()") : self.lines.index("model.eval()")] = self._first_of()
        self.line("see(cache.seen, cache.keys)\nmodel.train()")

    def _first_of(self) -> list[str]:
        return [
            "def first_of(found):",
            "    if isinstance(found, torch.Tensor): return found",
            "    if hasattr(found, 'logits'): return found.logits",
            "    if isinstance(found, dict): return found['logits']",
            "    return next(each for each in found if isinstance(each, torch.Tensor) and each.dim() == 3)",
        ]

    def loop(self) -> None:
        if "def first_of(found):" not in self.lines:
            self.lines += self._first_of()
        self.line(f"for turn in range({self.pick((7, 10, 13))}):")
        for _ in range(self.random.randint(0, 3)):
            turn = f"turn == {self.random.randint(1, 9)}" if self.chance(0.75) else f"turn % {self.pick((2, 3))} == 1"
            self.line(f"if {turn}:", 1)
            self.line(self.pick(_CHANGES), 2)
        rows = self.pick(("2", "2", "2", "3 - turn % 2", "2 + (turn == 6)"))
        length = self.pick(("5", "5", "4 + turn % 2", "3 + turn % 4", "3 + turn"))
        self.line(f"tokens = torch.randint(0, 7, ({rows}, {length}))", 1)
        given = ["tokens"]
        options = ("labels=tokens", "output_hidden=turn % 2 == 0", "cache=Cache()", "mask=torch.ones(tokens.shape)")
        given += self.random.sample(options, self.random.randint(0, 2))
        self.line("try:", 1)
        self.line(f"with {self.pick(_CONTEXTS)}:", 2)
        self.line(f"found = net({', '.join(given)})", 3)
        self.line("except (ValueError, RuntimeError, TypeError, IndexError, AttributeError) as error:", 1)
        self.line("see(type(error).__name__); continue", 2)
        self.line("see(vars(found) if isinstance(found, types.SimpleNamespace) else found)", 1)
        if self.chance(0.8):
            self.line(
                "loss = getattr(found, 'loss', None)\nif loss is None: loss = first_of(found).double().pow(2).mean()", 1
            )
            self.line("if loss.requires_grad:", 1)
            step = self.pick(
                (
                    "optimizer.zero_grad()\nloss.backward()\noptimizer.step()",
                    "loss.backward()\nif turn % 2: optimizer.step(); optimizer.zero_grad()",
                )
            )
            self.line(step, 2)
            if self.chance(0.3):
                self.line("see(nn.utils.clip_grad_norm_(model.parameters(), 1.0))", 2)
        self.line("see(model.head.weight, model.embed.weight.grad, torch.rand(1), model.calls, model.log)", 1)
        self.line(
            "last = list(model.last) if isinstance(model.last, torch.Size) else model.last\n"
            "see(getattr(model, 'counter', None), last)",
            1,
        )


def write(seed: int) -> Program:
    """The program of this seed, always the same."""
    return _Models(seed).write()
