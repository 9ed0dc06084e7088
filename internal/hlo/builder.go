package hlo

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/stablehlo"
	xlashapes "github.com/gomlx/go-xla/types/shapes"
	"github.com/gomlx/go-xla/types/shardy"

	_ "github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/graphs"
)

// for lazo's gradient rules

var (
	ErrCompiled  = errors.New("the builder was compiled already; make a new one")
	ErrForeignOp = errors.New("the operand is not of this builder")
)

// Builder is not safe for concurrent use.
type Builder struct {
	name     string
	compile  func(*Module) (compute.Executable, error)
	main     *Function
	root     *stablehlo.Function // numbers all values
	compiled bool

	functions  []*Function
	parameters []Parameter
	inPlace    map[int]int
	devices    Devices
	meshes     []*shardy.DeviceMesh
	cut        map[*value]cuts // sharded first axes
	cpu, gpu   bool
	tpu        bool
	plain      bool
	apart      bool
	constants  []Parameter
	widestHead int
	eager      *eager
	places     graphs.Places
	written    []written
	zeros      map[*value]int
	padded     map[*value]parts
	traces     []trace
	left       map[*value]bool // of finished traces
	fixed      map[*value]bool // constants and values of constants
	instead    map[*value]*op
	numbers    int
}

var _ compute.Builder = (*Builder)(nil)

// New returns a builder, whose Compile calls compile once.
func New(name string, compile func(*Module) (compute.Executable, error)) *Builder {
	b := &Builder{name: name, compile: compile, root: stablehlo.New(name).Main(), inPlace: map[int]int{}, zeros: map[*value]int{}, padded: map[*value]parts{}, fixed: map[*value]bool{}, cut: map[*value]cuts{}}
	b.main = b.newFunction(compute.MainName, nil, b.root)
	return b
}

// ForCPU sets whether the program is only for XLA's CPU backend, for its fastest forms of operations, and returns b.
func (b *Builder) ForCPU(cpu bool) *Builder {
	b.cpu = cpu
	return b
}

// ForGPU sets whether the program is for GPUs, which lack some convolutions, and returns b.
func (b *Builder) ForGPU(gpu bool) *Builder {
	b.gpu = gpu
	return b
}

// ForTPU sets whether the program is for TPUs, which lack some operations, and returns b.
func (b *Builder) ForTPU(tpu bool) *Builder {
	b.tpu = tpu
	return b
}

type value = stablehlo.Value

type op struct {
	in    *Function
	value *value
	again attribute // a scalar constant's text, for other functions: GoMLX makes one
	takes []taken
}

func (b *Builder) Name() string { return b.name }

func (b *Builder) open() error {
	if b.compiled {
		return fmt.Errorf("builder %q: %w", b.name, ErrCompiled)
	}
	return nil
}

func (b *Builder) OpShape(x compute.Value) (shapes.Shape, error) {
	ops, err := b.known([]compute.Value{x})
	if err != nil {
		return shapes.Invalid(), fmt.Errorf("hlo: shape of an operand: %w", err)
	}
	return shapeOf(ops[0].value), nil
}

func (b *Builder) known(operands []compute.Value) ([]*op, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	ops := make([]*op, len(operands))
	for i, operand := range operands {
		o, ok := operand.(*op)
		switch {
		case !ok || o == nil:
			return nil, fmt.Errorf("operand %d is %T(%v): %w", i, operand, operand, ErrForeignOp)
		case o.in.b != b:
			return nil, fmt.Errorf("operand %d is of builder %q, this is %q: %w", i, o.in.b.name, b.name, ErrForeignOp)
		}
		ops[i] = o
	}
	return ops, nil
}

func (f *Function) values(operands []compute.Value) ([]*value, error) {
	ops, err := f.b.known(operands)
	if err != nil {
		return nil, err
	}
	if f.returned {
		return nil, fmt.Errorf("%s has returned already", f)
	}
	values := make([]*value, len(ops))
	for i, o := range ops {
		if values[i], err = f.value(o); err != nil {
			return nil, fmt.Errorf("operand %d: %w", i, err)
		}
	}
	return values, nil
}

// Closures capture other functions' values; region checks that they are visible.
func (f *Function) value(o *op) (*value, error) {
	if f.b.left[o.value] {
		return nil, ErrTraced
	}
	if o.in == f {
		return o.value, nil
	}
	if o.again != "" {
		return f.constantAgain(o)
	}
	if alias, ok := f.aliases[o.value]; ok {
		return alias, nil
	}
	if f.parent == nil {
		return nil, fmt.Errorf("it was made in %s, which %s does not see", o.in, f)
	}
	name := o.value.String()[1:]
	if f.b.eager != nil && o.in == f.b.main {
		name = f.b.eager.outer(o)
	}
	// go-xla allows only ancestors' values, and fixes these too early.
	alias, err := f.text.NamedInput(name, o.value.Shape())
	if err != nil {
		return nil, err
	}
	f.text.Inputs = f.text.Inputs[:len(f.text.Inputs)-1]
	f.captured, f.aliases[o.value] = append(f.captured, o), alias
	return alias, nil
}

type lowering func(operands []*value) ([]*value, error)

// go-xla's and GoMLX's shape inference may panic. A failed operation leaves no statements.
func (f *Function) emit(kind compute.OpType, operands []compute.Value, lower lowering) ([]*op, error) {
	text, before, written := f.text, len(f.text.Statements), len(f.b.written)
	values, err := f.values(operands)
	if err != nil {
		return nil, &Error{Operation: kind, Err: err}
	}
	lower = unpacking(kind, lower)
	alone := f.b.eager != nil && f == f.b.main
	if alone {
		lower = f.b.alone(kind, lower)
	}
	defer func(called []*Function, takes []taken) { f.called, f.takes = called, takes }(f.called, f.takes)
	f.called, f.takes = nil, nil // a captured constant is emitted inside
	var results []*value
	// The error shows the caller's operands.
	if caught := graphs.Catch(func() { results, err = lower(slices.Clone(values)) }); caught != nil {
		err = caught
	}
	if err == nil {
		err = checkSizes(results)
	}
	if err != nil {
		text.Statements, f.b.written = text.Statements[:before], f.b.written[:written]
		return nil, &Error{kind, shapesOf(values), err}
	}
	if !alone {
		f.uses = append(f.uses, f.called...)
		f.noted(kind, values, results)
		f.b.keepCuts(kind, values, results)
	}
	ops := make([]*op, len(results))
	for i, v := range results {
		ops[i] = &op{in: f, value: v, takes: f.takes}
	}
	f.b.trace(kind, operands, ops)
	return ops, nil
}

func (f *Function) emitList(kind compute.OpType, operands []compute.Value, lower lowering) ([]compute.Value, error) {
	ops, err := f.emit(kind, operands, lower)
	if err != nil {
		return nil, err
	}
	list := make([]compute.Value, len(ops))
	for i, o := range ops {
		list[i] = o
	}
	return list, nil
}

func (f *Function) emitOne(kind compute.OpType, operands []compute.Value, lower func(operands []*value) (*value, error)) (compute.Value, error) {
	ops, err := f.emit(kind, operands, func(operands []*value) ([]*value, error) {
		v, err := lower(operands)
		return []*value{v}, err
	})
	if err != nil {
		return nil, err
	}
	return ops[0], nil
}

func parameterName(i int) string { return fmt.Sprintf("p%d", i) }

// InPlace lets an output of main overwrite a parameter's memory: the caller loses that input. Parameters are numbered
// as by [Function.Parameter]. Each output and parameter may be used once, with equal shapes.
func (b *Builder) InPlace(output, parameter int) error {
	if b.compiled {
		return fmt.Errorf("hlo: in place: builder %q: %w", b.name, ErrCompiled)
	}
	if output < 0 || parameter < 0 || parameter >= len(b.parameters) {
		return fmt.Errorf("hlo: in place: output %d over parameter %d, but there are %d parameters", output, parameter, len(b.parameters))
	}
	if other, taken := b.inPlace[output]; taken {
		return fmt.Errorf("hlo: in place: output %d over parameter %d: it goes over parameter %d already", output, parameter, other)
	}
	for other, p := range b.inPlace {
		if p == parameter {
			return fmt.Errorf("hlo: in place: output %d over parameter %d: output %d goes there already", output, parameter, other)
		}
	}
	b.inPlace[output] = parameter
	return nil
}

// Compile must follow main's Return.
func (b *Builder) Compile() (compute.Executable, error) {
	module, err := b.module()
	if err != nil {
		return nil, fmt.Errorf("hlo: compile %q: %w", b.name, err)
	}
	b.compiled = true
	if b.compile == nil {
		return nil, fmt.Errorf("hlo: compile %q: the builder was made without a function that compiles", b.name)
	}
	executable, err := b.compile(module)
	if err == nil && executable == nil {
		err = fmt.Errorf("hlo: compile %q: no executable came back", b.name)
	}
	return executable, err
}

func (b *Builder) module() (*Module, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	if !b.main.returned {
		return nil, errors.New("main has not returned: call its Return first")
	}
	m := &Module{
		Name: b.name, Parameters: slices.Clone(b.parameters), InPlace: maps.Clone(b.inPlace), Ops: map[compute.OpType]int{},
		Devices: b.devices.clone(), meshes: b.meshes,
	}
	for i, v := range b.main.outputs {
		m.Outputs = append(m.Outputs, Output{shapeOf(v), b.main.out[i]})
	}
	for output, parameter := range b.inPlace {
		if output >= len(m.Outputs) {
			return nil, fmt.Errorf("in place: output %d of %d over parameter %d", output, len(m.Outputs), parameter)
		}
		from, to := m.Outputs[output].Shape, m.Parameters[parameter]
		if !from.Equal(to.Shape) {
			return nil, fmt.Errorf("in place: output %d is %s, but parameter %d (%q) is %s; expected the same shape", output, from, parameter, to.Name, to.Shape)
		}
	}
	seen := map[*Function]bool{b.main: true}
	called := reach(b.main.uses, seen)
	live := map[int]bool{}
	var err error
	if m.functions, err = definitions(called, live); err != nil {
		return nil, err
	}
	m.source = &source{bodies: slices.Clone(m.functions)}
	m.body, err = bodyText(b.main.live(live), b.main.outputs)
	m.addConstants(b.constants)
	m.source.bodies = append(m.source.bodies, m.body)
	from := 0
	for _, w := range b.written {
		used := w.end == from
		for ; from < w.end; from++ {
			used = used || live[from]
		}
		if used && seen[w.in] {
			m.Ops[w.Kind]++
			m.source.operations = append(m.source.operations, w.Operation)
		}
	}
	return m, err
}

func (b *Builder) cutBy(split *shardy.ShardingSpec, v *value) {
	if split == nil || len(split.Axes) == 0 || len(b.meshes) != 1 || v.Shape().Rank() == 0 {
		return
	}
	var c cuts
	for _, axis := range split.Axes[0].MeshAxes {
		c = append(c, axis.AxisName)
	}
	if b.parts(c) > 1 {
		b.cut[v] = c
	}
}

type source struct {
	bodies     []string
	operations []Operation
}

func Capabilities() compute.Capabilities {
	c := compute.Capabilities{Operations: map[compute.OpType]bool{}, Functions: true, DTypes: map[dtypes.DType]bool{}}
	for kind := compute.OpTypeInvalid + 1; kind < compute.OpTypeLast; kind++ {
		if !slices.Contains(missing, kind) {
			c.Operations[kind] = true
		}
	}
	for t := range classes {
		c.DTypes[t] = true
	}
	return c
}

// missing operations have no method or dynamic shapes, or GoMLX composes them.
var missing = []compute.OpType{
	compute.OpTypeDot, compute.OpTypeSelectAndScatterSum, compute.OpTypeCollectiveBroadcast, compute.OpTypeAllGather,
	compute.OpTypeCapturedValue, compute.OpTypeBlockForDotGeneral,

	compute.OpTypeDynamicBroadcastInDim, compute.OpTypeDynamicIota, compute.OpTypeDynamicPad, compute.OpTypeDynamicReshape,

	compute.OpTypeCumSum, compute.OpTypeFusedSoftmax, compute.OpTypeFusedLayerNorm, compute.OpTypeFusedGelu, compute.OpTypeFusedDense,
	compute.OpTypeFusedScaledDotProductAttention, compute.OpTypeFusedScaledDotProductAttentionVJP,
	compute.OpTypeFusedAttentionQKVProjection, compute.OpTypeFusedQuantizedDense, compute.OpTypeQuantizedEmbeddingLookup,
}

func scalar(f *stablehlo.Function, t dtypes.DType, x any) (*value, error) {
	return f.ConstantFromFlatAndShape(xlashapes.CastAsDType(x, t), xlashapes.Make(t))
}

func kept(v *value, others ...*value) (*value, error) {
	same, err := stablehlo.OptimizationBarrier(append([]*value{v}, others...)...)
	if err != nil {
		return nil, err
	}
	return same[0], nil
}
