"""Writes random training programs: layers, losses, optimizers, hooks, and what people do between steps."""

from __future__ import annotations

from . import program
from .program import Failure, Program
from .writer import Writer

_CLASSES = {
    "Residual": """\
class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return x + self.inner(x)""",
    "Checkpointed": """\
class Checkpointed(nn.Module):
    def __init__(self, inner, reentrant):
        super().__init__()
        self.inner, self.reentrant = inner, reentrant
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=self.reentrant)""",
    "Twice": """\
class Twice(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return self.inner(self.inner(x)) * 0.5""",
    "First": """\
class First(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return self.inner(x)[0]""",
    "Attention": """\
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.inner = nn.MultiheadAttention(width, heads, batch_first=True)
    def forward(self, x):
        return self.inner(x, x, x, need_weights=False)[0]""",
    "Apply": """\
class Apply(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
    def forward(self, x):
        return self.function(x)""",
    "Scale": """\
class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.register_buffer("calls", torch.zeros(()))
    def forward(self, x):
        self.calls += 1
        return x * self.scale""",
}
_POINTWISE = (
    *("nn.ReLU()", "nn.ReLU(inplace=True)", "nn.Tanh()", "nn.GELU()", "nn.GELU(approximate='tanh')", "nn.SiLU()"),
    *("nn.SiLU(inplace=True)", "nn.Sigmoid()", "nn.ELU()", "nn.ELU(inplace=True)", "nn.LeakyReLU(0.2, inplace=True)"),
    *("nn.Softplus()", "nn.Mish()", "nn.Hardswish()", "nn.Dropout(0.3)", "nn.Dropout(0.2, inplace=True)", "nn.PReLU()"),
    *("nn.Identity()", "nn.Hardtanh(inplace=True)", "nn.CELU(inplace=True)", "nn.SELU()", "nn.Softsign()"),
)
_FUNCTIONS = (
    *("lambda x: x * 2 - 1", "lambda x: x.clone().mul_(2)", "lambda x: torch.cat([x, x])[: len(x)]"),
    *("lambda x: x.sin() + x.cos()", "lambda x: x.transpose(0, 1).contiguous().transpose(0, 1)"),
    *("lambda x: x.detach() + x", "lambda x: torch.where(x > 0, x, x * 0.1)", "lambda x: x - x.mean()"),
    *("lambda x: (x * 1).add_(x, alpha=0.5)", "lambda x: torch.stack([x, x * 2]).sum(0)", "lambda x: x.flip(0)"),
    *("lambda x: (x + 0).index_fill_(0, torch.tensor([0]), 0.5)", "lambda x: x.chunk(2, 0)[0].mean() + x"),
    *("lambda x: x * x.detach().abs().max()", "lambda x: (x * 1).masked_fill_(x > 1, 0.0)", "lambda x: x.clamp(-2, 2)"),
    *("lambda x: F.normalize(x, dim=-1)", "lambda x: x * torch.rand(1)", "lambda x: torch.add(x, x[:1])"),
)
_OPTIMIZERS = (
    *("SGD({0}, lr=0.05)", "SGD({0}, lr=0.05, momentum=0.9)", "SGD({0}, lr=0.02, momentum=0.9, nesterov=True)"),
    *("SGD({0}, lr=0.05, weight_decay=0.1)", "SGD({0}, lr=0.05, maximize=True)", "SGD({0}, lr=0.05, foreach=True)"),
    *("SGD({0}, lr=torch.tensor(0.05))", "SGD({0}, lr=0.05, momentum=0.9, dampening=0.5)"),
)
_FURTHER_OPTIMIZERS = (
    *("Adam({0}, lr=0.01)", "Adam({0}, lr=0.01, amsgrad=True)", "Adam({0}, lr=0.01, weight_decay=0.1, eps=0.001)"),
    *("AdamW({0}, lr=0.01)", "AdamW({0}, lr=0.01, foreach=False)", "AdamW({0}, lr=0.01, fused=True)"),
    *(
        "RMSprop({0}, lr=0.01)",
        "RMSprop({0}, lr=0.01, momentum=0.5, centered=True, eps=0.001)",
        "Adagrad({0}, lr=0.05)",
    ),
    *("Adadelta({0})", "Adamax({0}, lr=0.01)", "NAdam({0}, lr=0.01)", "RAdam({0}, lr=0.01)", "ASGD({0}, lr=0.01)"),
)
_SCHEDULERS = (
    *("StepLR(optimizer, 2)", "ExponentialLR(optimizer, 0.9)", "CosineAnnealingLR(optimizer, 5)"),
    *("LambdaLR(optimizer, lambda n: 0.9**n)", "LinearLR(optimizer)", "OneCycleLR(optimizer, 0.1, total_steps=40)"),
    *("CyclicLR(optimizer, 0.01, 0.1, cycle_momentum=False)", "MultiStepLR(optimizer, [1, 3])"),
)
_BETWEEN = (
    *("model.eval()", "model.train()", "optimizer.param_groups[0]['lr'] *= 0.5", "model.zero_grad()"),
    *("optimizer.load_state_dict(optimizer.state_dict())", "model.load_state_dict(model.state_dict())"),
    *("first.requires_grad_(False)", "first.requires_grad_()", "first.grad = None", "model.requires_grad_()"),
    *("with torch.no_grad(): first.mul_(0.9)", "first.data = first.data * 0.5", "first.data.add_(0.1)"),
    *("with torch.no_grad(): see(model(x))", "with torch.inference_mode(): see(model(x).sum().item())"),
    *("torch.manual_seed(turn)", "model.apply(lambda each: None)", "first.register_hook(lambda grad: grad * 0.5)"),
    *("model.register_forward_hook(lambda *given: None)", "nn.init.ones_(first)", "model = model.double()"),
    *("see([len(each['params']) for each in optimizer.param_groups])", "del x", "see(torch.rand(2))"),
    *("import copy; see(copy.deepcopy(model)(x).sum())", "first.copy_(first) if not first.requires_grad else None"),
    "nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(model.parameters()) * 0.5, model.parameters())",
)
_HOOKS = (
    *("register_forward_hook(lambda module, given, result: result * 0.5)", "register_forward_hook(lambda *all: None)"),
    *(
        "register_forward_pre_hook(lambda module, given: (given[0] * 2,))",
        "register_forward_pre_hook(lambda *all: None)",
    ),
    *("register_full_backward_hook(lambda module, grads, outs: None)", "register_full_backward_hook(note)"),
    "register_full_backward_hook(lambda module, grads, outs: tuple(g if g is None else g * 2 for g in grads))",
    *("register_full_backward_pre_hook(lambda module, outs: None)", "register_forward_hook(hook_result)"),
)
_PARAMETER_HOOKS = (
    *("register_hook(lambda grad: grad * 2)", "register_hook(lambda grad: None)"),
    *("register_post_accumulate_grad_hook(lambda leaf: None)", "register_post_accumulate_grad_hook(halve)"),
)
_HELPERS = {
    "note": "noted = []\ndef note(module, grads, outs):\n    noted.append(len(grads))",
    "hook_result": "def hook_result(module, given, result):\n    result.requires_grad and result.register_hook("
    "lambda grad: grad * 0.5)",
    "halve": "def halve(leaf):\n    leaf.grad.mul_(0.5)",
}


class _Training(Writer):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.shape = self.pick(("flat", "flat", "image", "sequence"))
        self.width = self.pick((1, 2, 3, 4, 5, 8))
        self.batch = self.pick((1, 2, 3, 5, 7))
        self.classes = self.pick((1, 2, 3, 5))
        self.narrow = self.chance(0.2)  # float32, whose rounding only plain descent leaves small
        self.layers: list[str] = []

    def write(self) -> Program:
        if not self.narrow:
            self.line("torch.set_default_dtype(torch.float64)")
        self.line(f"torch.manual_seed({self.random.randint(0, 99)})")
        self.line("layers = []")
        if self.shape == "sequence":
            self.add(f"nn.Embedding(7, {self.width}{self.pick(('', ', padding_idx=0', ', max_norm=1.0'))})")
        for _ in range(self.random.randint(1, 6)):
            self.add(self.layer())
        self.head()
        self.line("model = nn.Sequential(*layers)")
        self.line("first = next(iter(model.parameters()))")
        for _ in range(self.random.randint(0, 2)):
            self.hook()
        self.line(f"optimizer = torch.optim.{self.optimizer()}")
        scheduled = self.chance(0.3)
        if scheduled:
            self.line(f"scheduler = torch.optim.lr_scheduler.{self.pick(_SCHEDULERS)}")
        style = self.pick(("model", "model", "step", "step", "both", "loss"))
        self.line("net = compile(model)" if style in ("model", "both") else "net = model")
        self.step(scheduled)
        if style in ("step", "both"):
            self.line("step = compile(step)")
        if style == "loss":
            self.line("loss_of = compile(loss_of)")
        self.loop()
        return self.program()

    # The network

    def add(self, layer: str) -> None:
        for name, text in _CLASSES.items():
            if f"{name}(" in layer and not any(f"class {name}(" in line for line in self.lines):
                self.line(text)
        name = f"l{len(self.layers)}"
        self.layers.append(layer)
        self.line(f"{name} = {layer}")
        self.line(f"layers.append({name})")
        if "Linear(" in layer and layer.startswith("nn.Linear") and self.layers.count(layer) > 1 and self.chance(0.4):
            self.line(f"{name}.weight = l{self.layers.index(layer)}.weight")

    def layer(self, depth: int = 0) -> str:
        if depth < 2 and self.chance(0.25):
            inner = self.layer(depth + 1)
            options = (
                *(f"Residual({inner})", f"Residual(nn.Sequential({inner}, {self.layer(depth + 1)}))"),
                *(f"Checkpointed({inner}, {self.pick((True, False))})", f"Twice({inner})"),
            )
            return self.pick(options)
        if self.chance(0.35):
            return self.pick(_POINTWISE)
        if self.chance(0.2):
            return f"Apply({self.pick(_FUNCTIONS)})"
        return self.pick(self.weighted_layers())

    def weighted_layers(self) -> list[str]:
        width, bias = self.width, self.pick(("", ", bias=False"))
        if self.shape == "image":
            return [
                f"nn.Conv2d({width}, {width}, 3, padding=1{bias})",
                f"nn.Conv2d({width}, {width}, 1{bias})",
                f"nn.Conv2d({width}, {width}, 3, padding='same', groups={width})",
                f"nn.Conv2d({width}, {width}, 3, padding=2, dilation=2, padding_mode='circular')",
                f"nn.ConvTranspose2d({width}, {width}, 3, padding=1)",
                f"nn.BatchNorm2d({width})",
                f"nn.BatchNorm2d({width}, momentum=None)",
                f"nn.BatchNorm2d({width}, affine=False, track_running_stats=False)",
                f"nn.GroupNorm(1, {width})",
                f"nn.InstanceNorm2d({width}, affine=True)",
                "nn.MaxPool2d(3, 1, 1)",
                "nn.AvgPool2d(3, 1, 1)",
                "nn.Dropout2d(0.3)",
                "nn.LocalResponseNorm(3)",
                "nn.AdaptiveAvgPool2d(4)",
                "nn.Upsample(scale_factor=1.0, mode='nearest')",
            ]
        if self.shape == "sequence":
            return [
                f"nn.Linear({width}, {width}{bias})",
                f"nn.LayerNorm({width})",
                f"nn.RMSNorm({width})",
                f"First(nn.LSTM({width}, {width}, batch_first=True))",
                f"First(nn.GRU({width}, {width}, batch_first=True))",
                f"First(nn.RNN({width}, {width}, batch_first=True, nonlinearity='relu'))",
                f"First(nn.LSTM({width}, {width}, num_layers=2, dropout=0.2, batch_first=True))",
                f"Attention({width}, 1)",
                f"nn.TransformerEncoderLayer({width}, 1, 6, batch_first=True)",
                f"nn.TransformerEncoderLayer({width}, 1, 6, dropout=0.0, batch_first=True, norm_first=True)",
                f"Scale({width})",
            ]
        return [
            f"nn.Linear({width}, {width}{bias})",
            f"nn.Linear({width}, {width}{bias})",
            f"nn.utils.parametrizations.weight_norm(nn.Linear({width}, {width}))",
            f"nn.utils.parametrizations.spectral_norm(nn.Linear({width}, {width}))",
            f"nn.BatchNorm1d({width})",
            f"nn.LayerNorm({width})",
            f"nn.GroupNorm(1, {width})",
            f"nn.LazyLinear({width})",
            f"First(nn.LSTM({width}, {width}))",
            f"Scale({width})",
            "nn.LogSoftmax(-1)",
            "nn.Softmax(-1)",
        ]

    def head(self) -> None:
        if self.shape == "image":
            self.add("nn.AdaptiveAvgPool2d(1)")
            self.add("nn.Flatten()")
        if self.shape == "sequence":
            self.add(f"Apply(lambda x: {self.pick(('x.mean(1)', 'x[:, -1]', 'x.amax(1)', 'x.flatten(0, 1)'))})")
        self.add(f"nn.Linear({self.width}, {self.classes})")

    def hook(self) -> None:
        if self.chance(0.3):
            text = f"first.{self.pick(_PARAMETER_HOOKS)}"
        else:
            target = self.pick((f"l{self.random.randrange(len(self.layers))}", "model"))
            text = f"{target}.{self.pick(_HOOKS)}"
        for name, helper in _HELPERS.items():
            if f"({name})" in text:
                self.line(helper)
        self.line(text)

    def optimizer(self) -> str:
        groups = self.pick(
            ("model.parameters()",) * 4
            + ("[{'params': [first], 'lr': 0.1}, {'params': list(model.parameters())[1:]}]", "model.named_parameters()")
        )
        return self.pick(_OPTIMIZERS if self.narrow else _OPTIMIZERS + _FURTHER_OPTIMIZERS).format(groups)

    # Steps

    def loss(self) -> str:
        return self.pick(
            (
                *("F.mse_loss(out, torch.zeros_like(out))", "F.smooth_l1_loss(out, torch.ones_like(out))"),
                *("F.cross_entropy(out, torch.arange(len(out)) % out.shape[-1])", "out.pow(2).mean()", "out.sum()"),
                *("F.binary_cross_entropy_with_logits(out, torch.ones_like(out))", "out.logsumexp(-1).mean()"),
                *("F.nll_loss(out.log_softmax(-1), torch.zeros(len(out), dtype=torch.long))", "out.norm()"),
                *(
                    "F.cross_entropy(out, torch.full_like(out, 0.5), label_smoothing=0.1)",
                    "F.l1_loss(out, out.detach() + 1)",
                ),
                *("F.huber_loss(out, torch.zeros_like(out), reduction='none').mean()", "(out * out.detach()).sum()"),
                *("F.kl_div(out.log_softmax(-1), torch.softmax(out.detach() * 2, -1), reduction='batchmean')",),
            )
        )

    def step(self, scheduled: bool) -> None:
        self.line("def loss_of(out):")
        self.line(f"return {self.loss()}", 1)
        self.line("def step(x, turn):")
        early = self.chance(0.7)
        zero = f"optimizer.zero_grad({self.pick(('', '', 'set_to_none=False'))})"
        if early:
            self.line(zero, 1)
        depth = 1
        if self.chance(0.12):
            self.line("with torch.autocast('cpu', dtype=torch.bfloat16):", 1)
            depth = 2
        self.line("out = net(x)", depth)
        if self.chance(0.15):
            self.line(
                self.pick(("out.retain_grad()", "out.register_hook(lambda grad: grad * 0.5)", "out = out * 1")), depth
            )
        self.line("loss = loss_of(out)", depth)
        if self.chance(0.15):
            self.line("loss = loss + sum([each.pow(2).sum() for each in model.parameters()]) * 0.01", depth)
        if self.chance(0.1):
            self.line("penalty, = torch.autograd.grad(loss, [first], create_graph=True)", 1)
            self.line("loss = loss + penalty.pow(2).sum()", 1)
        self.line(
            self.pick(("loss.backward()",) * 3 + ("(loss / 2).backward()", "loss.backward(retain_graph=True)")), 1
        )
        if self.chance(0.15):
            self.line("loss_of(net(x * 0.5 if x.is_floating_point() else x)).backward()", 1)
        if self.chance(0.25):
            clip = (
                "nn.utils.clip_grad_norm_(model.parameters(), 0.5)",
                "nn.utils.clip_grad_value_(model.parameters(), 0.1)",
            )
            self.line(self.pick(clip), 1)
        if self.chance(0.2):
            self.line(f"if turn % {self.pick((2, 3))} == 0:", 1)
            self.line("optimizer.step()", 2)
        else:
            self.line("optimizer.step()", 1)
        if not early:
            self.line(zero, 1)
        if scheduled:
            self.line("scheduler.step()", 1)
        self.line(f"return {self.pick(('loss', 'loss.detach()', 'loss.item()', '[loss, out]', 'out.detach()'))}", 1)

    def given(self, batch: str) -> str:
        if self.shape == "sequence":
            return f"torch.randint(0, 7, ({batch}, {self.pick((1, 2, 4))}))"
        size = f"{batch}, {self.width}" + (
            f", {self.pick((2, 3, 4))}, {self.pick((3, 5))}" if self.shape == "image" else ""
        )
        text = f"torch.randn({size})"
        return (
            text + self.pick(("", "", "", ".requires_grad_()", ".to(memory_format=torch.channels_last)"))
            if (self.shape == "image")
            else text + self.pick(("", "", "", ".requires_grad_()", " * 2"))
        )

    def loop(self) -> None:
        self.line(f"for turn in range({self.pick((6, 7, 9))}):")
        batch = str(self.batch)
        if self.chance(0.25):
            batch = f"{self.batch} + turn % 2" if self.chance(0.5) else f"{self.batch} + (turn == 5)"
        self.line(f"x = {self.given(batch)}", 1)
        for _ in range(self.random.randint(0, 2) if self.chance(0.5) else 0):
            self.line(f"if turn == {self.random.randint(0, 6)}:", 1)
            self.line(self.pick(_BETWEEN), 2)
        self.line("see(step(x, turn))", 1)
        self.line("see(x.grad)", 1)
        self.line("see([[each, each.grad] for each in model.parameters()], list(model.buffers()))", 1)
        self.line("see(torch.rand(2))")


def write(seed: int) -> Program:
    """The program of this seed, always the same."""
    return _Training(seed).write()


def judge(text: Program) -> Failure | None:
    """Where runs of a program disagree, but for what steps uphill make of rounding."""
    return program.judge(text, chaotic=True)
