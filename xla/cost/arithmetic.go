package cost

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/lazo-ml/lazo/internal/brackets"
)

func (c *counter) arithmetic(t *tally, i *instruction, opcode string) error {
	out := i.shape.elements()
	need := func(n int) error {
		if len(i.operands) < n {
			return fmt.Errorf("instruction %q (line %d): %s with %d operands, expected %d at least", i.name, i.line, opcode, len(i.operands), n)
		}
		return nil
	}
	switch {
	case moved[opcode]:
	case transcendental[opcode]:
		t.transcendentals += out
	case elementwise[opcode]:
		t.vector += out
	case opcode == "dot":
		if err := need(2); err != nil {
			return err
		}
		contracted, err := contraction(i.operands[0].shape, i.attributes["lhs_contracting_dims"])
		if err != nil {
			return fmt.Errorf("instruction %q (line %d): %w", i.name, i.line, err)
		}
		t.matrix[i.operands[0].shape.dtype] += 2 * out * contracted
	case opcode == "convolution":
		if err := need(2); err != nil {
			return err
		}
		flops, err := convolution(i, i.operands[0].shape, i.operands[1].shape, i.shape)
		if err != nil {
			return fmt.Errorf("instruction %q (line %d): %w", i.name, i.line, err)
		}
		t.matrix[i.operands[0].shape.dtype] += flops
	case opcode == "reduce":
		if err := need(2); err != nil {
			return err
		}
		of := i.shape
		if len(of.parts) > 0 {
			of = of.parts[0]
		}
		return c.apply(t, i, "to_apply", i.operands[0].shape.elements()-of.elements())
	case opcode == "reduce-window":
		of := i.shape
		if len(of.parts) > 0 {
			of = of.parts[0]
		}
		size, err := windowSize(i)
		if err != nil {
			return err
		}
		return c.apply(t, i, "to_apply", of.elements()*(size-1))
	case opcode == "select-and-scatter":
		if err := need(2); err != nil {
			return err
		}
		size, err := windowSize(i)
		if err != nil {
			return err
		}
		source := i.operands[1].shape.elements()
		if err := c.apply(t, i, "select", source*(size-1)); err != nil {
			return err
		}
		return c.apply(t, i, "scatter", source)
	case opcode == "scatter":
		if err := need(3); err != nil {
			return err
		}
		return c.apply(t, i, "to_apply", i.operands[len(i.operands)-1].shape.elements())
	case opcode == "map":
		return c.apply(t, i, "to_apply", out)
	case opcode == "sort":
		if err := need(1); err != nil {
			return err
		}
		// n log n comparisons per row.
		s := i.operands[0].shape
		axes, err := brackets.Numbers(i.attributes["dimensions"])
		if err != nil || len(axes) != 1 || axes[0] >= len(s.dims) {
			return fmt.Errorf("instruction %q (line %d): sort along %q of %s", i.name, i.line, i.attributes["dimensions"], s)
		}
		return c.apply(t, i, "to_apply", s.elements()*math.Ceil(math.Log2(float64(max(s.dims[axes[0]], 1)))))
	case opcode == "topk":
		if err := need(1); err != nil {
			return err
		}
		t.vector += i.operands[0].shape.elements()
	case opcode == "rng" || opcode == "rng-bit-generator":
		t.transcendentals += out
	case opcode == "triangular-solve":
		if err := need(2); err != nil {
			return err
		}
		a := i.operands[0].shape
		if len(a.dims) == 0 {
			return fmt.Errorf("instruction %q (line %d): %s of %s", i.name, i.line, opcode, a)
		}
		t.matrix[a.dtype] += out * float64(a.dims[len(a.dims)-1])
	case opcode == "cholesky":
		if err := need(1); err != nil {
			return err
		}
		a := i.operands[0].shape
		if len(a.dims) == 0 {
			return fmt.Errorf("instruction %q (line %d): %s of %s", i.name, i.line, opcode, a)
		}
		t.matrix[a.dtype] += a.elements() * float64(a.dims[len(a.dims)-1]) / 3
	case opcode == "fft":
		lengths, err := brackets.Numbers(i.attributes["fft_length"])
		if err != nil {
			return err
		}
		size := 1.0
		for _, n := range lengths {
			size *= float64(n)
		}
		t.vector += 5 * out * math.Log2(max(size, 1))
	case opcode == "custom-call":
		return c.custom(t, i)
	default:
		at, _ := c.m.places.of(i)
		t.uncounted[strings.TrimSpace(opcode+" "+at.String())]++
	}
	return nil
}

func contraction(lhs shape, axes string) (float64, error) {
	list, err := brackets.Numbers(axes)
	if err != nil {
		return 0, err
	}
	terms := 1.0
	for _, a := range list {
		if a >= len(lhs.dims) {
			return 0, fmt.Errorf("a product over axis %d of %s", a, lhs)
		}
		terms *= float64(lhs.dims[a])
	}
	return terms, nil
}

var silent = map[string]bool{
	"AllocateBuffer": true, "AssumeGatherIndicesInBound": true, "Sharding": true, "SPMDFullToShardShape": true, "SPMDShardToFullShape": true,
	"MoveToHost": true, "MoveToDevice": true, "annotate_device_placement": true, "LayoutConstraint": true, "PinToDevice": true,
	"xla.sdy.FuncResultSharding": true, "GetTupleElement": true, "ResizeMinor": true, "BarrierTensor": true, "AsyncCollectiveStart": true, "AsyncCollectiveDone": true, "ConcatBitcast": true,
	"X64Combine": true, "X64SplitLow": true, "X64SplitHigh": true,
}

var contracting = regexp.MustCompile(`"lhs_contracting_dimensions":\[([0-9",]*)\]`)

func (c *counter) custom(t *tally, i *instruction) error {
	target := strings.Trim(i.attributes["custom_call_target"], `"`)
	first := i.shape
	if len(first.parts) > 0 {
		first = first.parts[0]
	}
	switch {
	case silent[target]:
		return nil
	case strings.HasPrefix(target, "__cublas$") && len(i.operands) >= 2:
		if found := contracting.FindStringSubmatch(i.attributes["backend_config"]); found != nil {
			terms, err := contraction(i.operands[0].shape, strings.ReplaceAll(found[1], `"`, ""))
			if err != nil {
				return fmt.Errorf("instruction %q (line %d): %w", i.name, i.line, err)
			}
			t.matrix[i.operands[0].shape.dtype] += 2 * first.elements() * terms
			return nil
		}
	case target == "__onednn$matmul" && len(i.operands) >= 2 && len(i.operands[0].shape.dims) > 0:
		dims := i.operands[0].shape.dims
		t.matrix[i.operands[0].shape.dtype] += 2 * first.elements() * float64(dims[len(dims)-1])
		return nil
	case strings.HasPrefix(target, "__cudnn$conv") && len(i.operands) >= 2:
		// Gradients permute the arrays of the convolution.
		input, kernel, output := i.operands[0].shape, i.operands[1].shape, first
		switch target {
		case "__cudnn$convBackwardInput":
			input, output = first, i.operands[0].shape
		case "__cudnn$convBackwardFilter":
			kernel, output = first, i.operands[1].shape
		}
		flops, err := convolution(i, input, kernel, output)
		if err != nil {
			return fmt.Errorf("instruction %q (line %d): %w", i.name, i.line, err)
		}
		t.matrix[i.operands[0].shape.dtype] += flops
		return nil
	}
	at, _ := c.m.places.of(i)
	t.uncounted[strings.TrimSpace(fmt.Sprintf("custom-call %q %s", target, at))]++
	return nil
}
