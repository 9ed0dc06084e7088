package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/internal/brackets"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/cost"
	"github.com/lazo-ml/lazo/xla/export"
)

// Step is a StableHLO program to plan.
type Step struct {
	Name string
	Text string
	// Batch has the indices of inputs whose first axis, of examples, is sharded. Without any, the program is for one
	// device, unless its text has shardings (sdy.mesh).
	Batch []int
	// Inputs names the inputs, or is nil.
	Inputs []string
	// Where maps a line of the text to the user's, or ""; it may be nil.
	Where func(line int) string
}

// StepOf returns an exported program. size is an exported batch size, 0 the default.
func StepOf(p *export.Program, size int) (Step, error) {
	s := Step{Name: p.Name, Text: p.Text}
	for i, in := range p.Inputs {
		s.Inputs = append(s.Inputs, in.Name)
		if in.Role == export.Batch && in.Shape.Rank() > 0 {
			s.Batch = append(s.Batch, i)
		}
	}
	if size == 0 {
		return s, nil
	}
	if len(s.Batch) > 0 && p.Inputs[s.Batch[0]].Shape.Dimensions[0] == size {
		return s, nil
	}
	text, found := p.Sizes[size]
	if !found {
		return Step{}, fmt.Errorf("plan: %s has no program for a batch of %d: export it with that size, or leave the size out", p.Name, size)
	}
	s.Text = text
	return s, nil
}

// For plans a step for a target: it compiles in a child process and counts the result. Options are those of
// [xla.OpenTopology]. A step that does not fit is reported, not an error. The compiling plugin must be installed (lazo
// install tpu, lazo install cuda_compile).
//
// Devices share the batch equally and replicate the state. If they do not divide it, the error wraps [xla.ErrUneven].
func (s Step) For(ctx context.Context, t Target, options ...xla.Option) (*Report, error) {
	r, err := s.plan(ctx, t, options)
	if err != nil {
		return nil, fmt.Errorf("plan: %s for %s: %w", s.Name, t.Name, err)
	}
	return r, nil
}

func (s Step) plan(ctx context.Context, t Target, options []xla.Option) (_ *Report, err error) {
	runtime, err := xla.OpenTopology(ctx, t.Compiler(), t.Topology(), options...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, runtime.Close()) }()
	devices := runtime.NumDevices()
	text, mesh, batch, division, err := s.divided(devices)
	if err != nil {
		return nil, err
	}
	r := &Report{Program: s.Name, Target: t.Name, Devices: devices, Division: division, Batch: batch,
		Compiler: strings.Join(strings.Fields(runtime.PlatformVersion()), " ")}
	program, err := runtime.CompileStableHLO(ctx, s.Name, text, xla.Built{})
	if fit, is := unfit(err); is {
		r.Fit = fit
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	if err := r.fill(program, mesh, t); err != nil {
		return nil, err
	}
	s.name(r.Counts.Largest)
	return r, nil
}

// clientShare of a GPU's memory is CUDA clients' default.
const clientShare = 0.75

func (r *Report) fill(program *xla.Program, mesh []cost.Axis, t Target) (err error) {
	hlo, err := program.Optimized()
	if err != nil {
		return err
	}
	if r.Counts, err = cost.Count(hlo, mesh); err != nil {
		return fmt.Errorf("the compiler's text: %w", graphs.Inner(err))
	}
	if r.Memory, err = program.Memory(); err != nil {
		return err
	}
	r.Compiled = program.CompileTime()
	r.Fit = Fit{Needs: r.Memory.Arguments + r.Memory.Outputs - r.Memory.Aliased + r.Memory.Temporary, Has: t.Machine.Memory}
	if t.Machine.Plugin == "tpu" {
		// The TPU compiler refuses what does not fit.
		r.Fit.Fits, r.Fit.By = true, "the compiler"
	} else {
		r.Fit.Fits, r.Fit.By = r.Fit.Needs <= r.Fit.Has, "arguments + outputs - in place + temporary against the device's memory"
		if share := float64(r.Fit.Needs) / float64(r.Fit.Has); r.Fit.Fits && share > clientShare {
			r.Fit.By += fmt.Sprintf(", of which a client takes %g unless xla.ClientOption(\"memory_fraction\", …) says %.2f at least", clientShare, math.Ceil(100*share)/100)
		}
	}
	r.Estimate = estimate(t, r.Counts)
	return nil
}

func (s Step) name(values []cost.Value) {
	for i := range values {
		v := &values[i]
		if v.Kind == "argument" && v.Argument < len(s.Inputs) {
			v.Name = s.Inputs[v.Argument]
		}
		if v.Line > 0 && s.Where != nil {
			if at := s.Where(v.Line); at != "" {
				v.Where = at
			}
		}
	}
}

var (
	partitions  = regexp.MustCompile(`mhlo\.num_partitions = (\d+)`)
	givenMesh   = regexp.MustCompile(`sdy\.mesh @\w+ = <\[([^\]]*)\]`)
	givenAxis   = regexp.MustCompile(`"([^"]+)" *= *(\d+)`)
	moduleLine  = regexp.MustCompile(`(?m)^ *module( @[\w$.-]+)?( attributes \{)?`)
	mainLine    = regexp.MustCompile(`func\.func( public)? @main\(`)
	tensorShape = regexp.MustCompile(`tensor<((?:\d+x)*)[a-zA-Z]`)
)

func (s Step) divided(devices int) (text string, mesh []cost.Axis, batch int, division string, err error) {
	rows, err := s.rows()
	if err != nil {
		return "", nil, 0, "", err
	}
	if found := givenMesh.FindStringSubmatch(s.Text); found != nil {
		n := 1
		for _, a := range givenAxis.FindAllStringSubmatch(found[1], -1) {
			size, err := strconv.Atoi(a[2])
			if err != nil || size < 1 || size > maxDevices || n > maxDevices/size {
				return "", nil, 0, "", fmt.Errorf("the program's mesh has an axis %s", a[0])
			}
			mesh, n = append(mesh, cost.Axis{Name: a[1], Size: size}), n*size
		}
		if n != devices {
			return "", nil, 0, "", fmt.Errorf("the program is divided over %d devices (%s), the target has %d: plan it for a target of %d", n, found[1], devices, n)
		}
		return located(s.Text, 0), mesh, rows, "as the program says: " + found[1], nil
	}
	if found := partitions.FindStringSubmatch(s.Text); found != nil && found[1] != "1" {
		if found[1] != strconv.Itoa(devices) {
			return "", nil, 0, "", fmt.Errorf("the program is for %s devices, the target has %d", found[1], devices)
		}
		return s.Text, nil, rows, "as the program says", nil
	}
	if devices == 1 {
		return s.Text, nil, rows, "one device", nil
	}
	if len(s.Batch) == 0 {
		return "", nil, 0, "", fmt.Errorf("it is not known which inputs are the batch, so it is a program for one device, and the target has %d: plan a folder exported by lazo, or a target of one device", devices)
	}
	if rows%devices != 0 {
		return "", nil, 0, "", fmt.Errorf("a batch of %d over %d devices: %w: use a batch size that they divide", rows, devices, xla.ErrUneven)
	}
	text, err = s.overData(devices, rows)
	return text, []cost.Axis{{Name: "data", Size: devices}}, rows, fmt.Sprintf("data parallel: %d examples on each of %d devices, all of the state on each", rows/devices, devices), err
}

func (s Step) signature() (inputs []string, start, end int, err error) {
	at := mainLine.FindStringIndex(s.Text)
	if at == nil {
		return nil, 0, 0, errors.New("the program has no function @main: expected StableHLO as text")
	}
	end, err = brackets.Closing(s.Text, at[1]-1)
	if err != nil {
		return nil, 0, 0, err
	}
	inputs, err = brackets.Split(s.Text[at[1]:end])
	if len(inputs) == 1 && inputs[0] == "" {
		inputs = nil
	}
	return inputs, at[1], end, err
}

func (s Step) rows() (int, error) {
	inputs, _, _, err := s.signature()
	if err != nil {
		return 0, err
	}
	for _, i := range s.Batch {
		if i < 0 || i >= len(inputs) {
			return 0, fmt.Errorf("input %d is the batch's: the program has %d", i, len(inputs))
		}
	}
	if len(s.Batch) == 0 {
		return 0, nil
	}
	dims, err := dimensions(inputs[s.Batch[0]])
	if err != nil || len(dims) == 0 {
		return 0, fmt.Errorf("input %d is the batch's, and has no axis of examples: %.80s", s.Batch[0], inputs[s.Batch[0]])
	}
	return dims[0], nil
}

func dimensions(text string) ([]int, error) {
	found := tensorShape.FindStringSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("%.80s: expected a tensor of a fixed shape", text)
	}
	return brackets.Numbers(strings.TrimSuffix(strings.ReplaceAll(found[1], "x", ","), ","))
}

// overData adds data-parallel shardings, but no lines: line numbers stay valid.
func (s Step) overData(devices, rows int) (string, error) {
	inputs, start, end, err := s.signature()
	if err != nil {
		return "", err
	}
	for i, in := range inputs {
		dims, err := dimensions(in)
		if err != nil {
			return "", fmt.Errorf("input %d: %w", i, err)
		}
		cut := slices.Contains(s.Batch, i) && len(dims) > 0 && dims[0] == rows
		inputs[i] = sharded(in, len(dims), cut)
	}
	rest := s.Text[end+1:]
	arrow := strings.TrimLeft(rest, " \n")
	if !strings.HasPrefix(arrow, "->") {
		return "", errors.New("the program's function @main returns nothing")
	}
	arrow = strings.TrimLeft(strings.TrimPrefix(arrow, "->"), " ")
	var outputs []string
	if strings.HasPrefix(arrow, "(") {
		closed, err := brackets.Closing(arrow, 0)
		if err != nil {
			return "", err
		}
		if outputs, err = brackets.Split(arrow[1:closed]); err != nil {
			return "", err
		}
		rest = arrow[closed+1:]
	} else {
		one, behind, found := strings.Cut(arrow, " {")
		if !found {
			return "", errors.New("the program's function @main has no body")
		}
		outputs, rest = []string{one}, " {"+behind
	}
	for i, out := range outputs {
		dims, err := dimensions(out)
		if err != nil {
			return "", fmt.Errorf("output %d: %w", i, err)
		}
		outputs[i] = sharded(out, len(dims), false)
	}
	rest = located(rest, strings.Count(s.Text[:len(s.Text)-len(rest)], "\n"))
	text := s.Text[:start] + strings.Join(inputs, ", ") + ") -> (" + strings.Join(outputs, ", ") + ")" + rest
	at := moduleLine.FindStringSubmatchIndex(text)
	if at == nil {
		return "", errors.New("the program is in no module")
	}
	counts := fmt.Sprintf("mhlo.num_replicas = 1 : i32, mhlo.num_partitions = %d : i32", devices)
	head, body := text[:at[1]], text[at[1]:]
	if at[4] >= 0 {
		closed, err := brackets.Closing(text, at[1]-1)
		if err != nil {
			return "", err
		}
		given := regexp.MustCompile(`mhlo\.num_(replicas|partitions) = \d+ : i32,? ?`).ReplaceAllString(text[at[1]:closed], "")
		head, body = head+counts+", "+given, text[closed:]
		head = strings.TrimSuffix(head, ", ")
		body = strings.TrimPrefix(body, "}")
		head += "}"
	} else {
		head += " attributes {" + counts + "}"
	}
	opened := strings.IndexByte(body, '{')
	if opened < 0 {
		return "", errors.New("the program's module has no body")
	}
	return head + body[:opened+1] + fmt.Sprintf(` sdy.mesh @mesh = <["data"=%d]>`, devices) + body[opened+1:], nil
}

var statement = regexp.MustCompile(`^ *(?:%[\w:#]+(?:, *%[\w:#]+)* = )?"?(?:stablehlo|func\.call)`)

// located names statements by line: XLA keeps a sharded program's names, not its lines. above is the lines before text.
func located(text string, above int) string {
	if strings.Contains(text, " loc(") {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	ends := map[int][]int{} // by last line
	var at brackets.Nesting
	type open struct{ line, depth int }
	var stack []open
	for n, line := range lines {
		if statement.MatchString(line) && !strings.Contains(line, "stablehlo.return") {
			stack = append(stack, open{n, at.Depth})
		}
		for i := 0; i < len(line); i++ {
			at.Read(line[i])
		}
		for len(stack) > 0 && at.Depth <= stack[len(stack)-1].depth && !at.Quoted {
			ends[n] = append(ends[n], stack[len(stack)-1].line)
			stack = stack[:len(stack)-1]
		}
	}
	for n, starts := range ends {
		if len(starts) == 1 {
			body := strings.TrimRight(lines[n], "\n")
			lines[n] = fmt.Sprintf("%s loc(\"program:%d\")%s", body, above+starts[0]+1, lines[n][len(body):])
		}
	}
	return strings.Join(lines, "")
}

func sharded(text string, rank int, cut bool) string {
	axes := make([]string, rank)
	for i := range axes {
		axes[i] = "{}"
	}
	if cut {
		axes[0] = `{"data"}`
	}
	attribute := fmt.Sprintf("sdy.sharding = #sdy.sharding<@mesh, [%s]>", strings.Join(axes, ", "))
	if tensor := strings.Index(text, "tensor<"); tensor >= 0 {
		if opened := strings.IndexByte(text[tensor:], '{'); opened >= 0 {
			at := tensor + opened + 1
			return text[:at] + attribute + ", " + text[at:]
		}
		if closed := strings.IndexByte(text[tensor:], '>'); closed >= 0 {
			at := tensor + closed + 1
			return text[:at] + " {" + attribute + "}" + text[at:]
		}
	}
	return text
}
