package checkpoint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// same compares to the last bit; == knows no NaN and no -0.
func same(t T, want, got any) {
	t.Helper()
	require.IsType(t, want, got)
	switch w := want.(type) {
	case float64:
		require.Equal(t, math.Float64bits(w), math.Float64bits(got.(float64)))
	case float32:
		require.Equal(t, math.Float32bits(w), math.Float32bits(got.(float32)))
	default:
		require.Equal(t, want, got)
	}
}

// roundTrip saves and loads.
func roundTrip(t T, c checkpoint.Content) *checkpoint.Checkpoint {
	t.Helper()
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	require.NoError(t, f.Save(context.Background(), 1, c))
	loaded, err := f.Newest(context.Background())
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return loaded
}

func exact(t T, want checkpoint.Params) {
	t.Helper()
	c := roundTrip(t, checkpoint.Content{Sections: map[string]any{"p": want}})
	var got checkpoint.Params
	require.NoError(t, c.Section("p", &got))
	require.Len(t, got, len(want))
	for name := range want {
		same(t, want[name], got[name])
	}
}

func TestF40_hardValues(t *testing.T) {
	p := checkpoint.Params{}
	for _, v := range []any{
		nil, true, false, "", "text", "Größe <&> \u2028 \x00 \"\\", "not UTF-8: \xff\xfe\x80", strings.Repeat("ü", 1<<19), []byte{}, []byte{0, 255},
		math.NaN(), math.Float64frombits(0x7ff8000000000123), math.Float64frombits(0xfff0000000000001), math.Inf(1), math.Inf(-1),
		math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 1e21, 1e-7,
		float32(math.NaN()), math.Float32frombits(0xff800001), float32(math.Inf(-1)), float32(0.1), float32(math.Copysign(0, -1)),
		int(-1), int8(math.MinInt8), int16(math.MaxInt16), int32(math.MinInt32), int64(math.MinInt64), int64(math.MaxInt64), int64(1<<53 + 1),
		uint(math.MaxUint), uint8(255), uint16(math.MaxUint16), uint32(math.MaxUint32), uint64(math.MaxUint64),
	} {
		p[fmt.Sprintf("%d %.20v", len(p), v)] = v
	}
	for name := range p {
		if strings.Contains(name, "\xff") {
			p["named"] = p[name]
			delete(p, name)
		}
	}
	exact(t, p)
	t.Logf("F40: %d hard values: each came back to the last bit", len(p))
}

func TestParamsRefuse(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		want  string
	}{
		{"another type", struct{}{}, "struct {}"},
		{"a list", []int{1}, "[]int"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := json.Marshal(checkpoint.Params{"lr": c.value})
			require.ErrorContains(t, err, `parameter "lr": a `+c.want+` cannot be kept`)
		})
	}
	_, err := json.Marshal(checkpoint.Params{"\xff": 1})
	require.ErrorContains(t, err, "UTF-8")
	for _, text := range []string{
		`1`, `{"a":1}`, `{"a":{}}`, `{"a":{"int":"1","bool":true}}`, `{"a":{"int":1}}`, `{"a":{"int8":"128"}}`, `{"a":{"uint64":"-1"}}`,
		`{"a":{"float64":"Nan"}}`, `{"a":{"float64":"NaN:0000000000000000"}}`, `{"a":{"float64":null}}`, `{"a":{"float32":0.1}}`, `{"a":{"float32":"NaN:zz"}}`,
		`{"a":{"complex":"1"}}`, `{"a":{"text64":"?"}}`, `{"a":{"bool":1}}`, `{"a":{"bool":null}}`, `{"a":{"bytes":null}}`, `{"a":{"nil":0}}`, `{"a":{"int":"1x"}}`,
	} {
		t.Run(text, func(t *testing.T) {
			var p checkpoint.Params
			require.Error(t, json.Unmarshal([]byte(text), &p), "%v", p)
		})
	}
}

func TestF40_randomValues(t *testing.T) {
	n := 0
	value := rapid.OneOf(
		rapid.Map(rapid.Uint64(), func(b uint64) any { return math.Float64frombits(b) }),
		rapid.Map(rapid.Uint32(), func(b uint32) any { return math.Float32frombits(b) }),
		rapid.Int64().AsAny(), rapid.Uint64().AsAny(), rapid.Int().AsAny(), rapid.String().AsAny(), rapid.Bool().AsAny(),
		rapid.SliceOf(rapid.Byte()).AsAny(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) any { return string(b) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		p := checkpoint.Params(rapid.MapOf(rapid.String(), value).Draw(t, "p"))
		for name, v := range p {
			if b, ok := v.([]byte); ok && b == nil {
				p[name] = []byte{}
			}
		}
		exact(t, p)
		metrics := map[string]float64{}
		for name, v := range p {
			if x, ok := v.(float64); ok {
				metrics[name] = x
			}
		}
		c := roundTrip(t, checkpoint.Content{Metrics: metrics})
		require.Len(t, c.Metrics, len(metrics))
		for name, x := range metrics {
			same(t, x, c.Metrics[name])
		}
		n += len(p)
	})
	t.Logf("F40: %d random values: each came back to the last bit", n)
}
