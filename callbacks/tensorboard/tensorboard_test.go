package tensorboard_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"image"
	"image/png"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

var fixture = flag.String("fixture", "", "write the fixture of TestTensorBoardSees into this folder and leave it there")

// writeFixture writes a run of all kinds of values that died at step 6 and was resumed from step 4.
func writeFixture(t *testing.T, dir string) {
	t.Helper()
	start := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	elapsed := func(step int64) loop.Elapsed {
		return loop.Elapsed{Steps: step, Date: loop.Date(start.Add(time.Duration(step) * time.Second / 4).UnixNano())}
	}
	for _, run := range []struct {
		from, until int64
		scale       float64
	}{{0, 6, 1}, {4, 8, 10}} {
		w := tensorboard.New(filepath.Join(dir, "1"), tensorboard.Hyperparameters(map[string]any{
			"rate": 1e-3, "optimizer": "adam", "clip": nil, "mixed": true, "layers": []int{64, 10},
			"data": map[string]any{"batch": uint8(32), "patience": 3 * time.Second}, "limit": math.Inf(1),
		}))
		for step := run.from; step <= run.until; step++ {
			var logs loop.Logs
			if step > run.from {
				logs.Loss("loss", run.scale/float64(step))
			}
			if step%4 == 0 {
				logs.Metric("accuracy_test", run.scale*float64(step))
			}
			if step == 8 {
				logs.Loss("nan", math.NaN())
				logs.Metric("large", 123456789)
				logs.Loss("hostile\n\xff <b>", 1)
				logs.Output("picture", ramp(3, 2))
				logs.Output("pictures", []image.Image{ramp(2, 2), ramp(2, 2)})
				logs.Output("voice", tensorboard.Audio{Samples: []float32{0, 1, -1, 0}, Rate: 8000, Channels: 2})
				logs.Output("voices", []tensorboard.Audio{{Samples: make([]float32, 3), Rate: 16000}, {Rate: 44100}})
				logs.Output("note", "*markdown*")
				logs.Output("notes", []string{"a", "b"})
				logs.Output("weights_test", tensorboard.NewHistogram([]float32{-1, 0, 0.5, 1}, 2))
			}
			r := loop.Report{Elapsed: elapsed(step), From: elapsed(run.from), Logs: logs}
			require.NoError(t, w.Watch(t.Context(), r))
		}
		require.NoError(t, w.End(t.Context(), loop.Ending{Report: loop.Report{Elapsed: elapsed(run.until), From: elapsed(run.from)}}))
	}
}

// seen prints the points that are left of the files of a run as seen.py does.
func seen(t *testing.T, run string, files []events) (lines []string) {
	t.Helper()
	for _, p := range kept(files) {
		if p.plugin == "hparams" {
			lines = append(lines, seenSession(t, run, p)...)
			continue
		}
		what := ""
		switch p.plugin {
		case "scalars":
			what = "scalar " + number(p.numbers[0])
		case "histograms":
			var all []string
			for _, v := range p.numbers {
				all = append(all, number(v))
			}
			what = fmt.Sprintf("histograms %s %s", shape(p), strings.Join(all, " | "))
		case "text":
			what = fmt.Sprintf("text %s %s", shape(p), strings.Join(p.texts, " | "))
		case "images":
			all := p.texts[:2:2]
			for _, s := range p.texts[2:] {
				picture, err := png.Decode(strings.NewReader(s))
				require.NoError(t, err)
				sum := 0
				for _, v := range picture.(*image.Gray).Pix {
					sum += int(v)
				}
				all = append(all, fmt.Sprintf("%dx%d %d", picture.Bounds().Dx(), picture.Bounds().Dy(), sum))
			}
			what = "images " + strings.Join(all, " | ")
		case "audio":
			var all []string
			for _, s := range p.texts {
				wav := []byte(s)
				channels, rate := binary.LittleEndian.Uint16(wav[22:]), binary.LittleEndian.Uint32(wav[24:])
				all = append(all, fmt.Sprintf("%d of %d at %d Hz", (len(wav)-44)/2/int(channels), channels, rate))
			}
			what = "audio " + strings.Join(all, " | ")
		}
		lines = append(lines, fmt.Sprintf("%s %s %d at %.3f %s", run, quote(p.tag), p.step, p.seconds, what))
	}
	return lines
}

func seenSession(t *testing.T, run string, p point) (lines []string) {
	t.Helper()
	content := parse(t, p.content)
	if end := content.bytes(4); end != nil {
		e := parse(t, end)
		return []string{fmt.Sprintf("%s session ended at %.3f status %d", run, e.float(2), e.integer(1))}
	}
	start := parse(t, content.bytes(3))
	lines = append(lines, fmt.Sprintf("%s session started at %.3f", run, start.float(5)))
	for _, b := range start[1] {
		entry := parse(t, b.([]byte))
		v, shown := parse(t, entry.bytes(2)), ""
		switch {
		case v[2] != nil:
			shown = "number_value " + number(v.float(2))
		case v[3] != nil:
			shown = "string_value " + strings.ToLower(string(v.bytes(3)))
		case v[4] != nil:
			shown = "bool_value " + strconv.FormatBool(v.integer(4) == 1)
		}
		lines = append(lines, fmt.Sprintf("%s parameter %s %s", run, entry.bytes(1), shown))
	}
	return lines
}

func number(v float64) string { return strings.ToLower(fmt.Sprintf("%.6e", v)) }

func shape(p point) string { return strings.ReplaceAll(fmt.Sprint(p.shape), " ", ", ") }

func quote(tag string) string { return "'" + tag + "'" }
