package checkpoint

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// float is a float64 that JSON preserves exactly: as a number, "NaN", "+Inf", "-Inf", or another NaN as
// "NaN:7ff8000000000123".
type float float64

func (f float) MarshalJSON() ([]byte, error) { return json.Marshal(f.value()) }

func (f float) value() any {
	x := float64(f)
	switch bits := math.Float64bits(x); {
	case math.IsInf(x, 1):
		return "+Inf"
	case math.IsInf(x, -1):
		return "-Inf"
	case bits == math.Float64bits(math.NaN()):
		return "NaN"
	case math.IsNaN(x):
		return fmt.Sprintf("NaN:%016x", bits)
	}
	return x
}

func (f *float) UnmarshalJSON(text []byte) error {
	var x float64
	if len(text) == 0 || text[0] != '"' {
		if string(text) == "null" {
			return fmt.Errorf("checkpoint: null is not a number")
		}
		err := json.Unmarshal(text, &x)
		*f = float(x)
		return err
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	x, ok := parseSpecial(s)
	if !ok {
		return fmt.Errorf(`checkpoint: %s is not a number; expected one, or "NaN", "+Inf", "-Inf"`, cut(text))
	}
	*f = float(x)
	return nil
}

func parseSpecial(s string) (float64, bool) {
	switch s {
	case "NaN":
		return math.NaN(), true
	case "+Inf":
		return math.Inf(1), true
	case "-Inf":
		return math.Inf(-1), true
	}
	digits, isNaN := strings.CutPrefix(s, "NaN:")
	bits, err := strconv.ParseUint(digits, 16, 64)
	x := math.Float64frombits(bits)
	return x, isNaN && err == nil && math.IsNaN(x)
}
