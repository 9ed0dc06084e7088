package pretrained

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/nn"
)

// LoRA configures trained additions x·A·B·Alpha/Rank to dense layers (Hu et al. 2021), as peft's LoraConfig. A and B
// are float32. A is drawn as in peft, and B begins with zeros.
type LoRA struct {
	Rank    int     // 8 if 0
	Alpha   float64 // 8 if 0
	Dropout float64 // of x, in training
	// Targets are ends of modules' names in the folder, like "q_proj" or "0.attention.self.query"; or "all-linear" alone
	// for all dense layers but the head's.
	Targets []string
	// Modules are ends of names of modules that are trained themselves, as peft's modules_to_save: "classifier".
	// Modules that the folder lacks always are.
	Modules []string
}

// LoRA returns the network with additions to its layers. Its other variables are not trained, except for those of
// Modules. Network.Save adds them to the weights, [Network.SaveAdapter] writes them alone.
func (n *Network) LoRA(l LoRA) *Network {
	if n.err != nil {
		return n
	}
	var targets any = l.Targets
	if slices.Equal(l.Targets, []string{allLinear}) {
		targets = allLinear
	}
	text, err := json.Marshal(map[string]any{
		"peft_type": "LORA", "r": cmp.Or(l.Rank, 8), "lora_alpha": cmp.Or(l.Alpha, 8), "lora_dropout": l.Dropout, "target_modules": targets, "modules_to_save": l.Modules,
		"bias": "none", "fan_in_fan_out": false, "init_lora_weights": true, "use_rslora": false, "task_type": map[task]any{causalLM: "CAUSAL_LM"}[n.task],
	})
	c := &config{file: "LoRA"}
	if err = errors.Join(err, json.Unmarshal(text, &c.fields)); err != nil {
		err = fmt.Errorf("LoRA: Alpha is %v and Dropout %v: %w", l.Alpha, l.Dropout, err)
	}
	return n.adapted(c, nil, err)
}

const allLinear = "all-linear"

type adapter struct {
	fields  map[string]json.RawMessage // of adapter_config.json
	layers  map[string]lowRank
	weights []weight
	trained map[string]bool // below the network's scope
}

// adapted's tensors are an adapter's, nil for a new one.
func (n *Network) adapted(c *config, tensors map[string]stored, err error) *Network {
	with := *n
	with.weights = slices.Clone(n.weights)
	with.adapter = &adapter{fields: maps.Clone(c.fields), layers: map[string]lowRank{}, trained: map[string]bool{}}
	if n.adapter != nil {
		err = errors.Join(err, errors.New("the network has additions already"))
	}
	if err == nil {
		err = with.adapt(c, tensors)
	}
	if err != nil {
		with.err = fmt.Errorf("pretrained: the network %s of %s: %w", n.task, n.base.folder, err)
	}
	return &with
}

func (n *Network) adapt(c *config, tensors map[string]stored) error {
	p := c.adapter()
	if c.err != nil {
		return c.err
	}
	whole, err := n.trainWhole(p, tensors == nil)
	if err != nil {
		return err
	}
	a := n.adapter
	var names, could, ends []string
	for _, w := range n.weights {
		scope, dense := strings.CutSuffix(w.own, "/kernel")
		if !dense || len(w.dims) != 2 || a.trained[w.own] {
			continue
		}
		module := moduleOf(n.savedName(w))
		could, ends = append(could, module), append(ends, module[strings.LastIndex(module, ".")+1:])
		if taken := p.target(module) || p.all && (!w.head || n.task == maskedLM); !taken || p.excluded(module) {
			continue
		}
		l := lowRank{in: w.shape()[0], out: w.shape()[1], dropout: p.dropout}
		if l.rank, l.scale, err = p.of(module); err != nil {
			return err
		}
		if most := max(l.in, l.out); l.rank > most {
			return fmt.Errorf("%s: the rank of %q is %d, expected at most %d: its weight is %v", c.file, module, l.rank, most, w.dims)
		}
		names, a.layers[scope] = append(names, module), l
		a.weights = append(a.weights,
			weight{tensor: tensor{name: module + ".lora_A.weight", own: scope + "/lora_a/kernel", dims: []int{l.rank, l.in}, transposed: true}, dtype: dtypes.Float32},
			weight{tensor: tensor{name: module + ".lora_B.weight", own: scope + "/lora_b/kernel", dims: []int{l.out, l.rank}, transposed: true}, dtype: dtypes.Float32})
	}
	slices.Sort(ends)
	for _, t := range p.targets {
		if tensors == nil && !slices.ContainsFunc(could, func(module string) bool { return endsWith(module, t) }) {
			return fmt.Errorf("%s: the target %q is not the end of a dense layer's name, expected one of %s", c.file, t, listed.Some(slices.Compact(ends)))
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: the targets %s match no dense layer, expected ends of %s", c.file, listed.Quoted(string(c.fields["target_modules"])), listed.Some(slices.Compact(ends)))
	}
	var errs [3]error
	if p.all {
		a.fields["target_modules"], errs[0] = json.Marshal(names)
	}
	a.fields["modules_to_save"], errs[1] = json.Marshal(whole)
	if tensors != nil {
		errs[2] = n.takeAdapter(tensors, p)
	}
	return errors.Join(errs[:]...)
}

func (n *Network) trainWhole(p parameters, all bool) (whole []string, err error) {
	whole = slices.Clone(p.modules)
	matched := map[string]bool{}
	var could []string
	for i := range n.weights {
		w := &n.weights[i]
		module := moduleOf(n.savedName(*w))
		could = append(could, module)
		by := wholeBy(module, p.modules)
		if matched[by] = true; by == "" && w.stored == nil {
			if by = module; !slices.ContainsFunc(whole, func(name string) bool { return name == module || strings.HasPrefix(module, name+".") }) {
				whole = append(whole, module)
			}
		}
		if by == "" {
			continue
		}
		n.adapter.trained[w.own], w.packed = true, false
		if n.family.dtype != dtypes.Float32 && !w.tail {
			return nil, fmt.Errorf("the module %q is trained itself, and the network is of %s: expected a module of the head, or a Base.DType of Float32, as small updates would be lost", module, n.family.dtype)
		}
		if tied := n.task == maskedLM || (n.task == causalLM || n.task == seq2seqLM) && !slices.ContainsFunc(n.weights, func(w weight) bool { return w.name == "lm_head.weight" }); tied && strings.Contains("/"+w.own, "/words/") {
			return nil, fmt.Errorf("the module %q is trained itself, and it is also the output's: expected other Modules, as peft trains a copy of it", module)
		}
	}
	for _, name := range p.modules {
		if all && !matched[name] {
			return nil, fmt.Errorf("LoRA: %q of Modules is not the end of a module's name, expected one of %s", name, listed.Some(slices.Compact(could)))
		}
	}
	if n.family.dtype != dtypes.Float32 {
		n.widen()
	}
	return whole, nil
}

// widen has outputs of float32 for losses, and a head of float32 if it is partly trained itself.
func (n *Network) widen() {
	head := slices.ContainsFunc(n.weights, func(w weight) bool { return w.tail && n.adapter.trained[w.own] })
	for i := range n.weights {
		if n.weights[i].tail && head {
			n.weights[i].dtype = dtypes.Float32
		}
	}
	if outputs := n.outputs; head {
		n.outputs = func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node { return outputs(s, wide(hidden)) }
	}
}

// wholeBy returns the name that a module or one around it ends with, as in peft.
func wholeBy(module string, names []string) string {
	for {
		for _, name := range names {
			if strings.HasSuffix(module, name) {
				return name
			}
		}
		end := strings.LastIndex(module, ".")
		if end < 0 {
			return ""
		}
		module = module[:end]
	}
}

func endsWith(module, name string) bool { return module == name || strings.HasSuffix(module, "."+name) }

func moduleOf(tensor string) string { return tensor[:max(0, strings.LastIndex(tensor, "."))] }

type lowRank struct {
	in, out, rank  int
	scale, dropout float64
}

// Apply has the variables lora_a/kernel [in, rank] and lora_b/kernel [rank, out].
func (l lowRank) Apply(s *model.Scope, x *graph.Node) *graph.Node {
	if step := layering.StepOf(x); step != nil && step.DType() != dtypes.Float32 {
		panic(fmt.Errorf("pretrained: LoRA under a policy that computes in %s, which is not implemented: set Base.DType to BFloat16, without a policy", step.DType()))
	}
	limit := 1 / math.Sqrt(float64(l.in))
	y := graph.ConvertDType(x, dtypes.Float32)
	if l.dropout > 0 {
		y = nn.Dropout{Rate: l.dropout}.Apply(s, y)
	}
	y = nn.Dense{Units: l.rank, NoBias: true, Kernel: nn.RandomUniform(-limit, limit)}.Apply(s.In("lora_a"), y)
	y = nn.Dense{Units: l.out, NoBias: true, Kernel: graph.Zeros}.Apply(s.In("lora_b"), y)
	return graph.MulScalar(y, l.scale)
}

// begin lets a graph's layers have the additions, and end freezes the other variables.
func (n *Network) begin(s *model.Scope, g *graph.Graph) {
	n.unpack(s, g)
	if n.adapter == nil {
		return
	}
	nn.Additions(s, g, func(at *model.Scope) nn.Layer {
		if l, has := n.adapter.layers[strings.TrimPrefix(at.Scope(), s.Scope()+"/")]; has {
			return l
		}
		return nil
	})
}

func (n *Network) end(s *model.Scope) {
	if n.adapter == nil {
		return
	}
	variable := func(w weight) *model.Variable { return s.Store().GetVariable(model.JoinPath(s.Scope(), w.own)) }
	for _, w := range n.weights {
		if v := variable(w); v != nil && !n.adapter.trained[w.own] {
			v.SetTrainable(false)
		}
	}
	for _, w := range n.adapter.weights {
		if variable(w) == nil {
			panic(fmt.Errorf("pretrained: LoRA: the target %q is not a layer Dense of the network: leave it out of Targets", moduleOf(moduleOf(w.name))))
		}
	}
}
