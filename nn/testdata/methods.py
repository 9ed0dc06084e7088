"""Writes what 100 steps of ten training methods come to in JAX, for package nn's TestMethods. Made with jax 0.10.2, optax 0.2.8 and numpy
2.4.6; run in this folder (`make numerics PY=python` does so and compares):

    JAX_PLATFORMS=cpu python methods.py > methods.json

A method has turns: a loss, the parameters that it trains, the steps in which it is due, and an optimizer. An optimizer has a state for each
parameter, which begins where the parameter is first trained. Weights and data are made as those of trajectories.py. Recorded are the losses in
float64, some elements of each weight after the last step, and how far off float32 is: in the mean of the losses, and in the root of the mean square
of these elements.
"""
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

from trajectories import below, beginning, dense, dense_weights, described, ulps, uniform

STEPS, LATE, KEPT, AVERAGE = 100, 40, 16, 0.95
methods = {}


class Turn:
    """rule is an optax transformation without a rate; turns of one rule share its state. also gives new values of weights that are not trained."""
    def __init__(self, loss, rule, rate, trains="", when=lambda i: True, slope=None, clip=None, also=None):
        self.loss, self.rule, self.rate, self.when, self.clip, self.also = loss, rule, rate, when, clip, also
        self.trains = trains if callable(trains) else lambda k: k.startswith(trains)
        self.slope = slope or (lambda loss, own, f: jax.value_and_grad(loss)(own, f))

    def program(self):
        rule = optax.chain(self.rule, optax.scale(-self.rate))

        @jax.jit
        def step(w, states, f):
            own = {k: v for k, v in w.items() if self.trains(k)}
            loss, slopes = self.slope(lambda own, f: self.loss({**w, **own}, f), own, f)
            if self.clip:
                slopes = optax.clip_by_global_norm(self.clip).update(slopes, None)[0]
            new, states = dict(w), dict(states)
            for k, v in own.items():
                update, states[k] = rule.update(slopes[k], states[k] if k in states else rule.init(v), v)
                new[k] = v + update
            if self.also:
                new |= self.also(w)
            return new, states, loss
        return step


def method(name, weights, data, batch, turns, averaged=None):
    """averaged is a loss of the averages of the weights after the last step, on the first batch."""
    n = len(next(iter(data.values())))
    assert n % batch == 0

    def train(start, dtype):
        with jax.enable_x64(dtype == np.float64):
            return trained(start, dtype)

    def trained(start, dtype):
        cast = lambda a: jnp.asarray(a.astype(dtype) if a.dtype == np.float32 else a)
        fields = {k: cast(v).reshape(n // batch, batch, *v.shape[1:]) for k, v in data.items()}
        w = {k: cast(v) for k, v in start.items()}
        programs, states, losses = [t.program() for t in turns], {id(t.rule): {} for t in turns}, []
        average = {k: jnp.zeros_like(v) for k, v in w.items()}
        for i in range(STEPS):
            f = {k: v[i % (n // batch)] for k, v in fields.items()}
            for turn, step in zip(turns, programs):
                if turn.when(i):
                    w, states[id(turn.rule)], loss = step(w, states[id(turn.rule)], f)
                    losses.append(float(loss))
            average = {k: AVERAGE * average[k] + (1 - AVERAGE) * v for k, v in w.items()}
        if averaged:
            losses.append(float(averaged({k: v / (1 - AVERAGE**STEPS) for k, v in average.items()}, {k: v[0] for k, v in fields.items()})))
        assert all(v.dtype == dtype for v in w.values())
        return np.asarray(losses), {k: np.asarray(v, np.float64).ravel()[::-(-v.size // KEPT)] for k, v in w.items()}

    def off(of):
        apart = np.concatenate([of[1][k] - exact[1][k] for k in exact[1]])
        return [float(f"{v:.3g}") for v in (np.mean(np.abs(of[0] - exact[0])), np.sqrt(np.mean(apart**2)))]

    start = beginning(name, weights)
    exact = train(start, np.float64)
    methods[name] = {
        "batch": batch, "weights": described(weights), "losses": [float(f"{v:.13g}") for v in exact[0]],
        "ends": {k: [float(f"{x:.13g}") for x in v] for k, v in exact[1].items()},
        "float32": off(train(start, np.float32)), "ulps": [off(train(s, np.float32)) for s in ulps(name, start)]}
    print(f"{name}: loss {exact[0][0]:.4g} to {exact[0][-1]:.4g}; float32 off by {methods[name]['float32']} (losses, weights); one unit in the last "
          f"place: {methods[name]['ulps']}", file=sys.stderr)


def late(i):
    return i >= LATE


def early(i):
    return i < LATE


def network(*sizes, of=""):
    weights = {}
    for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
        weights |= dense_weights(f"{of}layer_{i}", n, m)
    return weights


def layers(w, x, n, of="", activation=jnp.tanh):
    for i in range(n):
        x = dense(w, f"{of}layer_{i}", x)
        if i < n - 1:
            x = activation(x)
    return x


def chosen(logits, a):
    return jnp.take_along_axis(logits, a[:, None], 1)[:, 0]


def entropy(logp):
    return -jnp.mean(jnp.sum(jnp.exp(logp) * logp, 1))


def cross_entropy(logits, y):
    return -jnp.mean(chosen(jax.nn.log_softmax(logits), y))


def square(x):
    return jnp.mean(x**2)


# Places in four dimensions with a class of three, and a number.
N = 256
x = uniform("places", (N, 4))
y = (x[:, 0] > x[:, 1]).astype(np.int32) + (x[:, 2] > 0)
number = (x[:, :1] * x[:, 1:2] + x[:, 2:3]).astype(np.float32)

# Reinforcement learning: states, the actions that were taken with the policy of that time, and what they were worth.
episodes = {"x": x, "a": below("actions", (N,), 3), "old": uniform("policy", (N, 3)), "r": number[:, 0]}


def advantage(f):
    return jnp.sum(f["x"][:, :3] * jax.nn.one_hot(f["a"], 3, dtype=f["x"].dtype), 1) + f["r"]


# Proximal policy optimization (Schulman et al. 2017): one trunk, clipped ratio, entropy, clipped gradient.
def ppo(w, f):
    h = jnp.tanh(layers(w, f["x"], 2, "trunk/"))
    logp = jax.nn.log_softmax(dense(w, "policy", h))
    ratio = jnp.exp(chosen(logp, f["a"]) - chosen(jax.nn.log_softmax(f["old"]), f["a"]))
    a = advantage(f)
    a = (a - a.mean()) / (jnp.sqrt(square(a - a.mean())) + 1e-8)
    policy = -jnp.mean(jnp.minimum(ratio * a, jnp.clip(ratio, 0.8, 1.2) * a))
    return policy + 0.5 * square(dense(w, "value", h)[:, 0] - f["r"]) - 0.01 * entropy(logp)


method("ppo", network(4, 16, 16, of="trunk/") | dense_weights("policy", 16, 3) | dense_weights("value", 16, 1), episodes, 32,
       [Turn(ppo, optax.scale_by_adam(eps=1e-5), 3e-3, clip=0.5)])

# REINFORCE with a baseline: a critic in each step, an actor in each step from the 40th on, in turns on one optimizer.
adam = optax.scale_by_adam()


def baseline(w, f):
    return square(layers(w, f["x"], 2, "critic/")[:, 0] - f["r"])


def reinforce(w, f):
    logp = jax.nn.log_softmax(layers(w, f["x"], 2, "actor/"))
    gain = advantage(f) - layers(w, f["x"], 2, "critic/")[:, 0]
    return -jnp.mean(chosen(logp, f["a"]) * jax.lax.stop_gradient(gain)) - 0.01 * entropy(logp)


method("reinforce", network(4, 16, 1, of="critic/") | network(4, 16, 3, of="actor/"), episodes, 32,
       [Turn(baseline, adam, 5e-3, "critic/"), Turn(reinforce, adam, 5e-3, "actor/", late)])


# Denoising diffusion (Ho et al. 2020), with the cosine schedule, and the loss of the averaged weights.
def ddpm(w, f):
    t = f["t"].astype(f["x"].dtype)[:, None]
    alpha = jnp.cos((t / 50 + 0.008) / 1.008 * (np.pi / 2)) ** 2
    angles = t * jnp.asarray([1, 0.25, 0.0625, 0.015625], t.dtype)
    noisy = jnp.sqrt(alpha) * f["x"] + jnp.sqrt(1 - alpha) * f["noise"]
    return square(layers(w, jnp.concatenate([noisy, jnp.sin(angles), jnp.cos(angles)], 1), 3, activation=jax.nn.silu) - f["noise"])


method("ddpm", network(12, 24, 24, 4), {"x": x, "t": below("times", (N,), 50), "noise": uniform("noise of places", (N, 4), 1.75)}, 32,
       [Turn(ddpm, optax.scale_by_adam(), 2e-3)], averaged=ddpm)


# WGAN-GP (Gulrajani et al. 2017): the critic in each step, the generator in each second one, with an optimizer each.
def generated(w, f):
    return layers(w, f["z"], 2, "generator/")


def criticized(w, x):
    return layers(w, x, 3, "critic/", lambda x: jnp.where(x > 0, x, 0.2 * x))[:, 0]


def critic(w, f):
    made = jax.lax.stop_gradient(generated(w, f))
    slope = jax.grad(lambda x: criticized(w, x).sum())(f["e"] * f["x"] + (1 - f["e"]) * made)
    penalty = square(jnp.sqrt(jnp.sum(slope**2, 1) + 1e-12) - 1)
    return criticized(w, made).mean() - criticized(w, f["x"]).mean() + 10 * penalty


method("wgan-gp", network(4, 16, 16, 1, of="critic/") | network(2, 16, 4, of="generator/"),
       {"x": x, "z": uniform("noise of the generator", (N, 2)), "e": uniform("mixture", (N, 1), 0.5) + np.float32(0.5)}, 32,
       [Turn(critic, optax.scale_by_adam(0.5, 0.9), 2e-3, "critic/"),
        Turn(lambda w, f: -criticized(w, generated(w, f)).mean(), optax.scale_by_adam(0.5, 0.9), 2e-3, "generator/", lambda i: i % 2 == 1)])


# Sharpness-aware minimization (Foret et al. 2021), of what is trained: the hidden layer joins at step 40.
def sam(loss, own, f):
    slopes = jax.grad(loss)(own, f)
    norm = jnp.sqrt(sum(jnp.sum(s**2) for s in slopes.values()))
    return jax.value_and_grad(loss)({k: v + 0.05 * slopes[k] / norm for k, v in own.items()}, f)


def classified(w, f):
    return cross_entropy(layers(w, f["x"], 2), f["y"])


momentum = optax.trace(0.9)
method("sam", network(4, 16, 3), {"x": x, "y": y}, 32,
       [Turn(classified, momentum, 0.05, "layer_1", early, slope=sam), Turn(classified, momentum, 0.05, "", late, slope=sam)])

# MAML (Finn et al. 2017) with a rate for each weight in the inner steps (Li et al. 2017), which are learned from step 40 on.
nesterov = optax.trace(0.9, nesterov=True)


def maml(w, f):
    names = [k for k in w if not k.startswith("rates/")]

    def error(p, x, y):
        return square(layers(p, x, 2) - y)

    def task(_, at):
        p = {k: w[k] for k in names}
        for _ in range(2):
            g = jax.grad(error)(p, at["x"], at["y"])
            p = {k: p[k] - w["rates/" + k] * g[k] for k in names}
        return None, error(p, at["x2"], at["y2"])
    return jax.lax.scan(task, None, f)[1].mean()


learner = network(1, 12, 1)
shots, curve = uniform("shots", (32, 16, 1), 2.0), uniform("curves", (32, 3, 1))
targets = (curve[:, :1] * shots * shots + curve[:, 1:2] * shots + curve[:, 2:]).astype(np.float32)
method("maml", learner | {f"rates/{k}": (s, 0.05, 0.1) for k, (s, _, _) in learner.items()},
       {"x": shots[:, :8], "y": targets[:, :8], "x2": shots[:, 8:], "y2": targets[:, 8:]}, 4,
       [Turn(maml, nesterov, 5e-3, "layer_", early), Turn(maml, nesterov, 5e-3, "", late)])


# LoRA (Hu et al. 2022): what is added to frozen kernels has rank 2; the biases join at step 40.
def lora(w, f):
    h = f["x"]
    for i in range(2):
        at = f"layer_{i}"
        h = h @ w[at + "/kernel"] + (h @ w[at + "/lora_a"]) @ w[at + "/lora_b"] + w[at + "/bias"]
        if i == 0:
            h = jnp.tanh(h)
    return cross_entropy(h, f["y"])


adamw = optax.chain(optax.scale_by_adam(), optax.add_decayed_weights(0.05))
method("lora", {**network(4, 16, 3), **{f"layer_{i}/lora_{p}": (s, scale, 0) for i, p, s, scale in (
    (0, "a", (4, 2), 0.5), (0, "b", (2, 16), 0.0), (1, "a", (16, 2), 0.5), (1, "b", (2, 3), 0.0))}}, {"x": x, "y": y}, 32,
       [Turn(lora, adamw, 1e-2, lambda k: "lora" in k, early), Turn(lora, adamw, 1e-2, lambda k: not k.endswith("kernel"), late)])


# DP-SGD (Abadi et al. 2016): gradients clipped by example, and noise. The hidden layer joins at step 40.
def private(loss, own, f):
    def example(own, at):
        return jax.value_and_grad(loss)(own, {k: v[None] for k, v in at.items()})
    losses, slopes = jax.vmap(example, (None, 0))(own, {k: v for k, v in f.items() if k != "noise"})
    total, _ = optax.per_example_global_norm_clip(slopes, 0.5)
    noise, at, batch, noisy = f["noise"].ravel(), 0, len(losses), {}
    for k, v in own.items():  # by name: jit sorts them
        noisy[k] = (total[k] + noise[at:at + v.size].reshape(v.shape)) / batch
        at += v.size
    return losses.mean(), noisy


method("dp-sgd", network(4, 8, 3), {"x": x, "y": y, "noise": uniform("noise of gradients", (N, 5), 0.25)}, 16,
       [Turn(classified, momentum, 0.05, "layer_1", early, slope=private), Turn(classified, momentum, 0.05, "", late, slope=private)])


# Distillation (Hinton et al. 2015) from a teacher that is not trained; the student's hidden layer joins at step 40.
def distilled(w, f):
    soft = jax.nn.log_softmax(layers(w, f["x"], 2, "teacher/") / 2)
    logits = layers(w, f["x"], 2, "student/")
    divergence = jnp.mean(jnp.sum(jnp.exp(soft) * (soft - jax.nn.log_softmax(logits / 2)), 1))
    return 0.5 * cross_entropy(logits, f["y"]) + 0.5 * 4 * divergence


method("distillation", network(4, 16, 3, of="teacher/") | network(4, 6, 3, of="student/"), {"x": x, "y": y}, 32,
       [Turn(distilled, momentum, 0.05, "student/layer_1", early), Turn(distilled, momentum, 0.05, "student/", late)])


# A mean teacher (Tarvainen and Valpola 2017): its weights are the moving average of the student's, of before the step.
def consistent(w, f):
    teacher = jax.lax.stop_gradient(jax.nn.softmax(layers(w, f["x"], 2, "teacher/")))
    logits = layers(w, f["x"] + f["noise"], 2, "student/")
    return cross_entropy(logits, f["y"]) + 2 * square(jax.nn.softmax(logits) - teacher)


def followed(w):
    return {k: 0.95 * v + 0.05 * w[k.replace("teacher", "student")] for k, v in w.items() if k.startswith("teacher/")}


method("mean-teacher", network(4, 16, 3, of="student/") | network(4, 16, 3, of="teacher/"),
       {"x": x, "y": y, "noise": uniform("noise of places", (N, 4), 0.25)}, 32,
       [Turn(consistent, optax.scale_by_adam(), 5e-3, "student/", also=followed)])

json.dump(methods, sys.stdout, separators=(",", ":"))
print()
