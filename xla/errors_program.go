package xla

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lazo-ml/lazo/internal/hlo"
)

func located(m *hlo.Module, err error) error {
	err = WrapError(err)
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	if op, ok := m.Locate(e.Message); ok {
		e.Where, e.Operation, e.Operands = op.Where, op.Kind.String(), op.Operands
	}
	return err
}

func (p *Program) explained(err error) error {
	switch runs := p.runs.(type) {
	case *calls:
		return runs.executable.explained(err)
	case *describedProgram:
		return WrapError(err)
	}
	return err
}

func (e *executable) explained(err error) error {
	if errors.Is(err, ErrClosed) && e.of.closed.Load() {
		return errClosed
	}
	err = WrapError(err)
	if typed, ok := errors.AsType[*Error](err); ok && errors.Is(err, ErrOutOfMemory) {
		typed.Memory = e.memoryText()
	}
	return err
}

func (e *executable) memoryText() string {
	var lines []string
	if _, text := e.needs(); text != "" {
		lines = append(lines, "  the program needs "+text)
	}
	const shown = 3
	most := int64(0)
	for i, op := range e.module.Largest(shown) {
		outputs, bytes := make([]string, len(op.Outputs)), int64(0)
		for i, s := range op.Outputs {
			outputs[i], bytes = s.String(), bytes+int64(s.ByteSize())
		}
		most = max(most, bytes)
		if bytes < most/100 {
			break
		}
		lead := "  the largest values, before XLA joins operations: "
		if i > 0 {
			lead = "    "
		}
		line := fmt.Sprintf("%s%s: %s of %s", lead, byteText(bytes), strings.Join(outputs, ", "), op.Kind)
		if op.Where != "" {
			line += " at " + op.Where
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// The CPU plugin's peak omits temporary values.
func (e *executable) needs() (bytes int64, text string) {
	m, err := e.pjrt.Memory()
	if err != nil {
		return 0, ""
	}
	bytes = m.Arguments + m.Outputs - m.Aliased + m.Temporary
	return bytes, fmt.Sprintf("%s: %s of arguments, %s of outputs (%s of them in place), %s of temporary values",
		byteText(bytes), byteText(m.Arguments), byteText(m.Outputs), byteText(m.Aliased), byteText(m.Temporary))
}

func byteText(n int64) string {
	const unit = 1 << 10
	if n < 10*unit {
		return fmt.Sprintf("%d bytes", n)
	}
	size, name := float64(n), ""
	for _, name = range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if size /= unit; size < unit {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", size, name)
}
