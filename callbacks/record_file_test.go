package callbacks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/loop"
)

type writerForm struct {
	name string
	read func(*loop.History, io.Reader) error
	of   func(string, loop.Schedule) loop.Callback
}

var writerForms = []writerForm{{"json", (*loop.History).ReadJSON, callbacks.JSONL}, {"csv", (*loop.History).ReadCSV, callbacks.CSV}}

func (f writerForm) option(path string, when loop.Schedule) loop.Option { return f.of(path, when) }

func (f writerForm) byHand(t *testing.T, path string) loop.Attendant {
	w, err := byHand(f.of(path, loop.EachStep))
	require.NoError(t, err)
	return w
}

// stepsIn reads a writer's file and gives the steps of its rows.
func (f writerForm) stepsIn(t *testing.T, path string) []float64 {
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	var h loop.History
	require.NoError(t, f.read(&h, file))
	columns, err := h.Collect("elapsed.steps")
	require.NoError(t, err)
	return columns[0]
}

func upTo(from, to int) (steps []float64) {
	for i := from; i <= to; i++ {
		steps = append(steps, float64(i))
	}
	return steps
}

func eachForm(t *testing.T, do func(t *testing.T, form writerForm, path string)) {
	for _, form := range writerForms {
		t.Run(form.name, func(t *testing.T) { do(t, form, filepath.Join(t.TempDir(), "log."+form.name)) })
	}
}

// write writes one row a step by hand, as a run from step from on.
func (f writerForm) write(t *testing.T, path string, from, to int) {
	w := f.byHand(t, path)
	for i := from; i <= to; i++ {
		require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: at(int64(i)), From: at(int64(from - 1)), Logs: metric("m", float64(i))}))
	}
	require.NoError(t, w.End(t.Context(), loop.Ending{}))
}

func TestWriter_files(t *testing.T) {
	want := map[string]string{"json": `{"elapsed.steps":2,"elapsed.samples":20,"elapsed.time":0,"metrics.sum":1,"losses.late":"NaN"}
{"elapsed.steps":4,"elapsed.samples":40,"elapsed.time":0,"metrics.sum":6,"outputs.n":3}
`, "csv": `elapsed.steps,elapsed.samples,elapsed.time,elapsed.date,metrics.sum,losses.late,outputs.n
2,20,0,,1,NaN,
4,40,0,,6,,3
`}
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		w := form.byHand(t, path)
		first := metric("sum", 1)
		first.Set(loop.Losses, "late", late{new(int), math.NaN(), nil})
		first.Output("image", []byte{1})
		second := metric("sum", 6)
		second.Output("n", 3)
		require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: at(2), Logs: first}))
		require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: at(3)}), "a turn without logs is no record")
		require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: at(4), Logs: second}))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want[form.name], string(got), "it is all there before the end")
		require.NoError(t, w.End(t.Context(), loop.Ending{}))
		require.NoError(t, w.End(t.Context(), loop.Ending{}), "closing twice")
		require.NoFileExists(t, path+".tmp")
	})
}

func TestWriter_inARun(t *testing.T) {
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		option := form.option(path, loop.Every(loop.Steps(2)))
		for range 2 { // one option, two runs: each begins at step 0 and rewrites the file
			result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9), option)
			require.NoError(t, err)
			require.Equal(t, []float64{2, 4, 6, 8}, form.stepsIn(t, path))
			_, err = loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), result.State, rest(numbers(3)), option, loop.Continue(result.Elapsed, nil))
			require.NoError(t, err)
			require.Equal(t, []float64{2, 4, 6, 8, 10, 12}, form.stepsIn(t, path))
		}
	})
}

func TestWriter_resume(t *testing.T) {
	for _, row := range []struct {
		name     string
		from, to int
		want     []float64
	}{
		{"where it ended", 6, 8, upTo(1, 8)},
		{"from an older checkpoint", 3, 4, upTo(1, 4)},
		{"with a gap", 9, 9, append(upTo(1, 5), 9)},
		{"from the start", 1, 2, upTo(1, 2)},
	} {
		t.Run(row.name, func(t *testing.T) {
			eachForm(t, func(t *testing.T, form writerForm, path string) {
				form.write(t, path, 1, 5)
				form.write(t, path, row.from, row.to)
				require.Equal(t, row.want, form.stepsIn(t, path))
			})
		})
	}
}

// The part of an old file that is kept does not depend on when this run writes for the first time.
func TestWriter_resumeWithOtherSchedules(t *testing.T) {
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		run := func(steps int, from loop.Elapsed, when loop.Schedule) {
			step := loop.On(when, loop.StepFunc(add))
			_, err := loop.New(step).Run(t.Context(), 0, rest(numbers(steps)), form.option(path, when), loop.Continue(from, nil))
			require.NoError(t, err)
		}
		run(9, loop.Elapsed{}, loop.Every(loop.Steps(2)))
		run(6, at(4), loop.Every(loop.Steps(5)))
		require.Equal(t, []float64{2, 4, 5, 10}, form.stepsIn(t, path), "6 and 8 are of the run that was given up")
		run(2, at(10), loop.EachStep.AndAtStart())
		require.Equal(t, []float64{2, 4, 5, 10, 11, 12}, form.stepsIn(t, path), "a run that continues has no task at its start")
		form.write(t, path, 1, 1)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotContains(t, string(got), "metrics.sum", "a file that is begun anew has not the old columns")
	})
}

// F29: a file truncated at any byte is continued and loses at most its incomplete line.
func TestF29_writerGoesOnWithACutFile(t *testing.T) {
	cuts := 0
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		form.write(t, path, 1, 3)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		headers := strings.Count(string(whole), "\n") - 3
		for cut := range len(whole) + 1 {
			if form.name == "csv" && cut > 0 && cut <= strings.IndexByte(string(whole), '\n') {
				continue // its first line comes by a renaming: it is there whole or not at all
			}
			require.NoError(t, os.WriteFile(path, whole[:cut], 0o600))
			lines := max(strings.Count(string(whole[:cut]), "\n")-headers, 0)
			form.write(t, path, 4, 4)
			require.Equal(t, append(upTo(1, lines), 4), form.stepsIn(t, path), "cut at %d", cut)
			cuts++
		}
	})
	t.Logf("F29: %d cuts, 0 whole lines lost, 0 half ones left", cuts)
}

func TestWriter_leavesOtherFilesAlone(t *testing.T) {
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		for _, content := range []string{"my thesis", "my thesis\n", "# a,b\n1,2\n", `{"loss":1}` + "\n", "[\n", "elapsed.steps,a.b\n1,2,3\n", "elapsed.steps,a.b\nx,2\n"} {
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			w := form.byHand(t, path)
			err := w.Watch(t.Context(), loop.Report{Elapsed: at(1), Logs: metric("m", 1)})
			require.ErrorContains(t, err, path+": line ")
			require.ErrorContains(t, err, "; move the file away")
			require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: at(2), Logs: metric("m", 1)}))
			require.NoError(t, w.End(t.Context(), loop.Ending{}))
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, content, string(got))
		}
	})
}

func TestWriter_noFolder(t *testing.T) {
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9), form.option(filepath.Join(path, "x"), loop.EachStep))
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, "loop: step 1: each step: ")
	})
}

func TestWriter_newColumnsComeLater(t *testing.T) {
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		w := form.byHand(t, path)
		for i := range int64(20) {
			require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: at(i + 1), Logs: metric(fmt.Sprint("m", i/5), float64(i))}))
		}
		require.NoError(t, w.End(t.Context(), loop.Ending{}))
		form.write(t, path, 21, 22) // and in a resumed run
		require.Equal(t, upTo(1, 22), form.stepsIn(t, path))
		file, err := os.Open(path)
		require.NoError(t, err)
		defer file.Close()
		var h loop.History
		require.NoError(t, form.read(&h, file))
		for i := range 4 {
			_, values, err := h.Series(fmt.Sprint("m", i))
			require.NoError(t, err)
			require.Equal(t, upTo(5*i, 5*i+4), values)
		}
	})
}

// An error of writing is returned at the end and does not end the run.
func TestWriter_troublesDoNotEndTheRun(t *testing.T) {
	lost := errors.New("device lost")
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		step := func(_ context.Context, s, n int) (int, loop.Logs, error) {
			logs := metric("m", float64(n))
			logs.Metric("bad\nname", 1)
			logs.Set(loop.Losses, "loss", late{new(int), 0, lost})
			return s + 1, logs, nil
		}
		result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(5), form.option(path, loop.EachStep))
		require.ErrorIs(t, err, records.ErrName, "the first error")
		require.ErrorContains(t, err, "at the end: ")
		require.Equal(t, 5, result.State)
		require.Equal(t, upTo(1, 5), form.stepsIn(t, path))

		broken := form.byHand(t, path)
		fetched := 0
		for i := range int64(9) {
			var logs loop.Logs
			logs.Set(loop.Metrics, "m", late{&fetched, 1, nil})
			require.NoError(t, broken.Watch(t.Context(), loop.Report{Elapsed: at(i + 6), From: at(5), Logs: logs}))
			if i == 1 {
				require.NoError(t, callbacks.BreakFile(broken))
			}
		}
		err = broken.End(t.Context(), loop.Ending{})
		require.ErrorIs(t, err, os.ErrClosed)
		require.ErrorContains(t, err, path+": 7 records of steps 8 to 14 are missing: ")
		require.Equal(t, upTo(1, 7), form.stepsIn(t, path))
		require.Equal(t, 9, fetched, "lines wait with their values")
	})
}

// Two callbacks of one file would corrupt each other's lines. The second is refused before the first step, and the file
// is free again after the run.
func TestWriter_oneFileTwice(t *testing.T) {
	var oneLoss loop.Logs
	oneLoss.Loss("loss", 1)
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		steps := 0
		run := func(options ...loop.Option) error {
			_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
				steps++
				return s, oneLoss, nil
			}))).Run(t.Context(), 0, loop.Data[int](func(yield func(int, error) bool) { yield(1, nil) }), options...)
			return err
		}
		other := filepath.Join(filepath.Dir(path), ".", "x", "..", filepath.Base(path))
		err := run(form.option(path, loop.EachStep), form.option(other, loop.Every(loop.Steps(1))))
		require.ErrorContains(t, err, "another callback of this process writes it: give each its own file")
		require.Zero(t, steps)
		for range 2 {
			require.NoError(t, run(form.option(path, loop.EachStep)))
		}
	})
}

// warnings returns what the default logger gets in a test.
func warnings(t *testing.T) *strings.Builder {
	var text strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn})))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &text
}

// S52: a disk that is full for a time costs no line, also with a new column meanwhile, and the logger has it at once.
func TestWriter_fullDisk(t *testing.T) {
	const size, step = 1 << 30, 90
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		text, disk := warnings(t), &callbacks.Disk{Room: size}
		w := form.byHand(t, path)
		callbacks.OnDisk(disk, w)
		for i := 1; i <= step; i++ {
			logs := metric("m", float64(i))
			switch {
			case i == 40:
				disk.Room = 5 // a half line
			case i == 79:
				require.Equal(t, upTo(1, 39), form.whole(t, path))
				require.Equal(t, 1, strings.Count(text.String(), "level=WARN"), text)
				require.Contains(t, text.String(), "not written, kept in memory until it can be")
				require.Contains(t, text.String(), "step=40 ")
				disk.Room = size
			case i > 60:
				logs.Metric("late", 1)
			}
			require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: at(int64(i)), Logs: logs}))
			if i < 40 || i > 78 {
				require.Equal(t, upTo(1, i)[i-1:], form.whole(t, path)[i-1:], "written with the next line")
			}
		}
		require.Equal(t, 2, strings.Count(text.String(), "level=WARN"), text)
		require.Contains(t, text.String(), "written again")
		require.Contains(t, text.String(), "from=40 to=78 lost=0")
		require.NoError(t, w.End(t.Context(), loop.Ending{}))
		require.Equal(t, upTo(1, step), form.stepsIn(t, path))
		require.NoFileExists(t, path+".tmp")
		t.Logf("S52: a disk full for 39 of %d lines: 0 lost, 2 warnings", step)
	})
}

// watchLate returns a function that reports lines with a column more from after on.
func watchLate(t *testing.T, w loop.Attendant, after int) func(from, to int) {
	return func(from, to int) {
		for i := from; i <= to; i++ {
			logs := metric("m", float64(i))
			if i > after {
				logs.Metric("late", 1)
			}
			require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: at(int64(i)), Logs: logs}))
		}
	}
}

// S52: on a full disk, a file is not rewritten with each line for a new column, and no line is lost.
func TestWriter_aNewColumnOnAFullDisk(t *testing.T) {
	const size, lines = 1 << 30, 1000
	_, disk := warnings(t), &callbacks.Disk{Room: size}
	form := writerForms[1]
	path := filepath.Join(t.TempDir(), "file")
	w := form.byHand(t, path)
	callbacks.OnDisk(disk, w)
	watch := watchLate(t, w, 10)
	watch(1, 10)
	before := disk.Opened
	disk.Room = 0
	watch(11, lines)
	require.Equal(t, 13, disk.Opened-before, "at lines 11, 13, 17, 25, 41, 73, 137, and then each 128")
	disk.Room = size
	watch(lines+1, lines+128)
	require.Equal(t, upTo(1, lines+128), form.whole(t, path))
	disk.Room = 0
	watch(lines+129, lines+130)
	disk.Room = size
	require.NoError(t, w.End(t.Context(), loop.Ending{}))
	require.Equal(t, upTo(1, lines+130), form.stepsIn(t, path))
}

// whole is stepsIn without an incomplete last line.
func (f writerForm) whole(t *testing.T, path string) []float64 {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := filepath.Join(t.TempDir(), "lines")
	require.NoError(t, os.WriteFile(lines, text[:bytes.LastIndexByte(text, '\n')+1], 0o600))
	return f.stepsIn(t, lines)
}

// S52: memory for lines that wait is bounded, and the log and the run's end say which are lost.
func TestWriter_longFullDisk(t *testing.T) {
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		text, disk := warnings(t), &callbacks.Disk{Room: 1 << 30}
		w := form.byHand(t, path)
		callbacks.OnDisk(disk, w)
		name := strings.Repeat("x", records.Room/8) // 7 wait
		watch := func(from, to int) {
			for i := from; i <= to; i++ {
				require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: at(int64(i)), Logs: metric(name, float64(i))}))
			}
		}
		watch(1, 2)
		disk.Room = 0
		watch(3, 20)
		require.Contains(t, text.String(), "lost from this step on, until it can be written")
		require.Contains(t, text.String(), "step=10 kept=7 ")
		disk.Room = 1 << 30
		watch(21, 22)
		require.Contains(t, text.String(), "from=3 to=9 lost=11 lost_from=10 lost_to=20")
		require.Equal(t, 3, strings.Count(text.String(), "level=WARN"))
		err := w.End(t.Context(), loop.Ending{})
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, path+": 11 records of steps 10 to 20 are missing: ")
		require.Equal(t, append(upTo(1, 9), 21, 22), form.stepsIn(t, path))
	})
}

// S52: a run that ends on a full disk says what is missing; the run that resumes continues after the last whole line.
func TestWriter_endsOnAFullDisk(t *testing.T) {
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		_, disk := warnings(t), &callbacks.Disk{Room: 1 << 20}
		w := form.byHand(t, path)
		callbacks.OnDisk(disk, w)
		for i := 1; i <= 9; i++ {
			if i == 6 {
				disk.Room = 5
			}
			require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: at(int64(i)), Logs: metric("m", 1)}))
		}
		require.ErrorContains(t, w.End(t.Context(), loop.Ending{}), ": 4 records of steps 6 to 9 are missing: ")
		form.write(t, path, 10, 11)
		require.Equal(t, append(upTo(1, 5), 10, 11), form.stepsIn(t, path))
		form.write(t, path, 6, 8)
		require.Equal(t, upTo(1, 8), form.stepsIn(t, path), "from a checkpoint of step 5")
	})
}

// S52: a file that was renamed, removed, replaced or emptied begins again with the next line, as logrotate needs.
func TestWriter_rotation(t *testing.T) {
	for _, row := range []struct {
		name   string
		rotate func(path string) error
		from   int
	}{
		{"renamed", func(path string) error { return os.Rename(path, path+".1") }, 6},
		{"removed", os.Remove, 6},
		{"emptied", func(path string) error { return os.Truncate(path, 0) }, 6},
		{"renamed and created", func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, nil, 0o600))
		}, 6},
		{"replaced by a copy", func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".2", text, 0o600), os.Rename(path+".2", path))
		}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			eachForm(t, func(t *testing.T, form writerForm, path string) {
				w := form.byHand(t, path)
				watch := watchLate(t, w, 8)
				watch(1, 5)
				require.NoError(t, row.rotate(path))
				watch(6, 10)
				require.NoError(t, w.End(t.Context(), loop.Ending{}))
				require.Equal(t, upTo(row.from, 10), form.stepsIn(t, path))
				if strings.HasPrefix(row.name, "renamed") {
					require.Equal(t, upTo(1, 5), form.stepsIn(t, path+".1"))
				}
				form.write(t, path, 9, 11)
				require.Equal(t, upTo(row.from, 11), form.stepsIn(t, path), "a resumed run continues it")
			})
		})
	}
}
