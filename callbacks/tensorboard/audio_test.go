package tensorboard_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

// Jaxloop refuses audio; here it is written, and only sound that is none is an error, which names the entry.
func TestB63_audio(t *testing.T) {
	good := tensorboard.Audio{Samples: []float32{0, 0.5, -2, float32(math.NaN())}, Rate: 8000, Channels: 2}
	got, err := write(t, func(l *loop.Logs) { l.Output("voice", good) })
	require.NoError(t, err)
	p := got.points[0]
	require.Equal(t, "audio", p.plugin)
	require.Equal(t, []int{1}, p.shape)
	wav := []byte(p.texts[0])
	le := binary.LittleEndian
	require.Equal(t, "RIFF", string(wav[:4]))
	require.EqualValues(t, len(wav)-8, le.Uint32(wav[4:]))
	require.Equal(t, "WAVEfmt ", string(wav[8:16]))
	require.EqualValues(t, 2, le.Uint16(wav[22:]))
	require.EqualValues(t, 8000, le.Uint32(wav[24:]))
	require.EqualValues(t, 32000, le.Uint32(wav[28:]))
	require.Equal(t, "data", string(wav[36:40]))
	require.EqualValues(t, 8, le.Uint32(wav[40:]))
	var samples []int16
	for b := wav[44:]; len(b) > 0; b = b[2:] {
		samples = append(samples, int16(le.Uint16(b)))
	}
	require.Equal(t, []int16{0, 16384, -32767, 0}, samples)

	for _, row := range []struct {
		name  string
		audio tensorboard.Audio
		err   string
	}{
		{"no rate", tensorboard.Audio{}, "the rate must be at least 1 Hz, got 0"},
		{"channels", tensorboard.Audio{Rate: 1, Channels: -1}, "the channels must be 1 to 255, got -1"},
		{"half a moment", tensorboard.Audio{Rate: 1, Channels: 2, Samples: make([]float32, 3)}, "3 samples cannot be divided among 2 channels"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := write(t, func(l *loop.Logs) {
				l.Output("voice", row.audio)
				l.Loss("loss", 1)
			})
			require.EqualError(t, err, "tensorboard: step 1: outputs.voice: audio: "+row.err)
			require.Equal(t, []string{"losses/loss"}, got.tags(), "the others are written")
		})
	}
	t.Logf("B63: audio is written, %d wrong ones refused", 3)
}

// clu's test of write_values: each kind goes to its plugin, whatever the order in which they were logged; sounds keep
// their rates, histograms their buckets.
func TestB98_eachKindGoesToItsPlugin(t *testing.T) {
	got, err := write(t, func(l *loop.Logs) {
		l.Output("histogram", tensorboard.NewHistogram([]float64{0, 1}, 5))
		l.Output("image", ramp(3, 2))
		l.Metric("accuracy", 0.25)
		l.Output("low", tensorboard.Audio{Samples: make([]float32, 2), Rate: 8000})
		l.Output("text", "*hello*")
		l.Output("high", []tensorboard.Audio{{Rate: 16000}, {Rate: 44100}})
		l.Output("images", []image.Image{ramp(1, 1), ramp(1, 1)})
		l.Output("rows", []string{"a", "b\xff"})
		l.Output("array", []float32{1, 2})
		l.Output("nothing", nil)
		l.Output("no images", []image.Image{})
		l.Output("no sounds", []tensorboard.Audio{})
		l.Output("empty", tensorboard.NewHistogram([]float32{}, 0))
	})
	require.NoError(t, err)
	require.Equal(t, 1, got.records)
	type kind struct {
		plugin string
		class  int64
		shape  string
	}
	kinds := map[string]kind{}
	for _, p := range got.points {
		kinds[strings.TrimPrefix(p.tag, "outputs/")] = kind{p.plugin, p.class, fmt.Sprint(p.shape)}
		for i, s := range p.texts {
			if p.plugin == "audio" {
				rate := binary.LittleEndian.Uint32([]byte(s[24:]))
				require.EqualValues(t, map[string][]int{"outputs/low": {8000}, "outputs/high": {16000, 44100}}[p.tag][i], rate)
			}
		}
		switch p.tag {
		case "outputs/image":
			require.Equal(t, []string{"3", "2"}, p.texts[:2], "width, height")
			picture, err := png.Decode(strings.NewReader(p.texts[2]))
			require.NoError(t, err)
			require.Equal(t, color.Gray{Y: 17 * 5}, picture.At(2, 1))
		case "outputs/text":
			require.Equal(t, []string{"*hello*"}, p.texts)
		case "outputs/rows":
			require.Equal(t, []string{"a", "b\ufffd"}, p.texts)
		}
	}
	require.Equal(t, map[string]kind{
		"histogram": {"histograms", 2, "[5 3]"}, "image": {"images", 3, "[3]"}, "images": {"images", 3, "[4]"},
		"metrics/accuracy": {"scalars", 1, "[]"}, "low": {"audio", 3, "[1]"}, "high": {"audio", 3, "[2]"},
		"text": {"text", 2, "[]"}, "rows": {"text", 2, "[2]"},
	}, kinds)
	t.Logf("B98: %d values of %d logged in one record: %v", len(kinds), 13, kinds)
}

// How the other writers of a run show these values.
func TestValues_inOtherWriters(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if strings.HasPrefix(a.Key, "outputs.") {
			return a
		}
		return slog.Attr{}
	}}))
	step := func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Output("voice", tensorboard.Audio{Samples: make([]float32, 16000), Rate: 8000, Channels: 2})
		logs.Output("weights", tensorboard.NewHistogram([]float32{-1, 0, 2}, 4))
		logs.Output("nothing", tensorboard.Histogram{})
		logs.Output("image", ramp(3, 2))
		logs.Output("images", []image.Image{ramp(3, 2)})
		return s, logs, nil
	}
	file := filepath.Join(t.TempDir(), "run.jsonl")
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(1), callbacks.Log(logger, loop.EachStep), callbacks.JSONL(file, loop.EachStep))
	require.NoError(t, err)
	require.JSONEq(t, `{"outputs.voice":"audio of 16000 samples, 2 channels, 8000 Hz","outputs.weights":"histogram of 3 values from -1 to 2",
		"outputs.nothing":"histogram of 0 values","outputs.image":"image 3x2","outputs.images":"1 images"}`, out.String())
}
