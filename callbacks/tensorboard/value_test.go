package tensorboard_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
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
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

// write logs one turn at step 1 by hand, and reads what was written for the training.
func write(t *testing.T, log func(*loop.Logs)) (events, error) {
	t.Helper()
	dir := t.TempDir()
	w := tensorboard.New(dir)
	var logs loop.Logs
	log(&logs)
	require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 1}, Logs: logs}))
	err := w.End(t.Context(), loop.Ending{})
	all := read(t, filepath.Join(dir, "train"))
	if len(all) == 0 {
		return events{}, err
	}
	return all[0], err
}

func ramp(width, height int) image.Image {
	p := image.NewGray(image.Rect(0, 0, width, height))
	for i := range p.Pix {
		p.Pix[i] = uint8(17 * i)
	}
	return p
}

// Jaxloop's test of its summary action: two histograms, a bare value and a typed scalar at step 1 come as one write of
// all.
func TestB62_histogramsAndScalarsOfATurn(t *testing.T) {
	got, err := write(t, func(l *loop.Logs) {
		l.Output("weights", tensorboard.NewHistogram([]float32{1, 2, 3}, 2))
		l.Output("biases", tensorboard.NewHistogram([]float64{0, 0.5, 1}, 0))
		l.Loss("bare", 0.5)
		l.Output("typed", int32(7))
	})
	require.NoError(t, err)
	require.Equal(t, 1, got.records)
	require.Equal(t, []string{"outputs/weights", "outputs/biases", "losses/bare", "outputs/typed"}, got.tags())
	plugins := map[string]int{}
	for _, p := range got.points {
		require.EqualValues(t, 1, p.step)
		plugins[p.plugin]++
	}
	require.Equal(t, map[string]int{"histograms": 2, "scalars": 2}, plugins)
	require.Equal(t, []float64{1, 2, 1, 2, 3, 2}, got.points[0].numbers)
	require.Equal(t, []int{2, 3}, got.points[0].shape)
	require.Equal(t, []int{30, 3}, got.points[1].shape)
	t.Logf("B62: %v in %d record", plugins, got.records)
}

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

type badPayload struct{ err error }

func (b badPayload) Float() (float64, error) { return 0, b.err }
func (b badPayload) Any() (any, error)       { return nil, b.err }

func TestValues_thatCannotBeWritten(t *testing.T) {
	for _, row := range []struct {
		name  string
		value any
		err   string
	}{
		{"lost", badPayload{errors.New("device lost")}, "device lost"},
		{"sizes", []image.Image{ramp(1, 2), ramp(2, 1)}, "image 2 of a list is (2,1), the first (1,2): they must be of one size"},
		{"a nil image", []image.Image{nil}, "a nil image"},
		{"no pixels", ramp(0, 0), "png: invalid format: invalid image size: 0x0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := write(t, func(l *loop.Logs) { l.Output("o", row.value) })
			require.EqualError(t, err, "tensorboard: step 1: outputs.o: "+row.err)
			require.Empty(t, got.points)
		})
	}
}

func TestNewHistogram(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, row := range []struct {
		name    string
		values  []float64
		buckets int
		want    []tensorboard.Bucket
	}{
		{"empty", nil, 3, nil},
		{"none finite", []float64{nan, inf, -inf}, 3, nil},
		{"all the same", []float64{2, 2}, 3, []tensorboard.Bucket{{Low: 1.5, High: 2.5, Count: 2}}},
		{"the last is closed", []float64{0, 1, 2}, 2, []tensorboard.Bucket{{Low: 0, High: 1, Count: 1}, {Low: 1, High: 2, Count: 2}}},
		{"not finite are left out", []float64{0, nan, inf, 2}, 1, []tensorboard.Bucket{{Low: 0, High: 2, Count: 2}}},
		{"as wide as can be", []float64{-math.MaxFloat64, 0, math.MaxFloat64}, 2,
			[]tensorboard.Bucket{{Low: -math.MaxFloat64, High: 0, Count: 1}, {Low: 0, High: math.MaxFloat64, Count: 2}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, tensorboard.NewHistogram(row.values, row.buckets).Buckets)
		})
	}
}

// Each finite number is in the bucket where its edges say, none is lost, and buckets lie side by side.
func TestNewHistogram_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Float64()).Draw(t, "values")
		h := tensorboard.NewHistogram(values, rapid.IntRange(0, 40).Draw(t, "buckets"))
		for i, b := range h.Buckets {
			count := 0.0
			for _, v := range values {
				if v >= b.Low && (v < b.High || i == len(h.Buckets)-1 && v == b.High) {
					count++
				}
			}
			require.Equal(t, count, b.Count)
			if i > 0 {
				require.Equal(t, h.Buckets[i-1].High, b.Low)
			}
		}
		sum := 0.0
		for _, b := range h.Buckets {
			sum += b.Count
		}
		require.EqualValues(t, len(values), sum, "rapid draws finite numbers")
	})
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
