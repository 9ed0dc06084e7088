package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// 200 MB, as in the peers' script.
const ckptTensors, ckptRows, ckptColumns, ckptMB = 10, 5_000, 1_000, 200

const ckptOfState = "save: thread blocked, state"

// A background save's blocking, a save that waits for the disk, and a load with checksums. Floors of the same repeat
// are copying, a synced write, and reading the bytes. "State" is a managed.State on the device. Ratio is the best
// repeat by the best floor.
func ckpt(ctx context.Context, b *bench) (err error) {
	dir, err := os.MkdirTemp("", "lazo-bench-")
	if err != nil {
		return err
	}
	folder, err := checkpoint.Open(filepath.Join(dir, "lazo"), checkpoint.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	defer func() { err = errors.Join(err, folder.Close(), os.RemoveAll(dir)) }()
	s := &ckptState{dir: dir, folder: folder, async: folder.Async(), content: ckptContent()}
	if b.wants(ckptOfState) {
		if err := s.open(ctx, b); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.state.Close()) }()
	}
	for _, figure := range []struct {
		variant           string
		floor, our, after func(context.Context) error // after is not measured
	}{
		{"save: thread blocked", s.copy, s.saveAsync, s.clear},
		{ckptOfState, s.copy, s.saveState, s.clear},
		{"save+fsync", s.writeRaw, s.save, s.clear},
		{"restore", s.readRaw, s.load, s.nothing},
	} {
		if !b.wants(figure.variant) {
			continue
		}
		if err := errors.Join(s.writeRaw(ctx), s.save(ctx)); err != nil {
			return err
		}
		var floors, ours []float64
		for repeat := -1; repeat < b.repeats; repeat++ {
			if repeat >= 0 {
				if err := b.turn(ctx); err != nil {
					return err
				}
			}
			floor, err := seconds(ctx, figure.floor)
			if err != nil {
				return err
			}
			our, err := seconds(ctx, figure.our)
			if err := errors.Join(err, figure.after(ctx)); err != nil {
				return err
			}
			if repeat >= 0 {
				floors, ours = append(floors, floor), append(ours, our)
			}
		}
		l := line{Workload: "checkpoint", Variant: figure.variant, Unit: "s", MB: ckptMB, RSSMB: rssMB(), Floor: slices.Min(floors)}
		l.Ratio = slices.Min(ours) / l.Floor
		if err := b.emit(l, ours); err != nil {
			return err
		}
	}
	return s.async.Close()
}

func seconds(ctx context.Context, do func(context.Context) error) (float64, error) {
	start := time.Now()
	err := do(ctx)
	return time.Since(start).Seconds(), err
}

type ckptState struct {
	dir     string
	folder  *checkpoint.Folder
	async   *checkpoint.Async
	content checkpoint.Content
	state   *managed.State
	copied  [][]byte
	step    checkpoint.Step
}

func ckptContent() checkpoint.Content {
	random, c := rand.New(rand.NewPCG(0, 0)), checkpoint.Content{}
	for i := range ckptTensors {
		data := make([]byte, 4*ckptRows*ckptColumns)
		for at := 0; at < len(data); at += 8 {
			binary.LittleEndian.PutUint64(data[at:], random.Uint64())
		}
		c.Tensors = append(c.Tensors, checkpoint.Tensor{Name: fmt.Sprintf("w%d", i), DType: safetensors.F32, Dims: []int{ckptRows, ckptColumns}, Data: data})
	}
	return c
}

func (s *ckptState) copy(context.Context) error {
	if s.copied == nil {
		for _, t := range s.content.Tensors {
			s.copied = append(s.copied, make([]byte, len(t.Data)))
		}
	}
	for i, t := range s.content.Tensors {
		copy(s.copied[i], t.Data)
	}
	return nil
}

func (s *ckptState) saveAsync(ctx context.Context) error {
	s.step++
	return s.async.Save(ctx, s.step, s.content)
}

func (s *ckptState) open(ctx context.Context, b *bench) error {
	r, err := b.open(ctx)
	if err != nil {
		return err
	}
	if s.state, err = managed.New(strategies.Jit(r)); err != nil {
		return err
	}
	step := managed.TestStep(func(b *managed.Builder) {
		for _, t := range s.content.Tensors {
			values, err := safetensors.Values[float32](t.Data)
			if err != nil {
				panic(err)
			}
			b.Scope().VariableWithValue(t.Name, tensors.FromFlatDataAndDimensions(values, t.Dims...)).NodeValue(b.Graph())
		}
		b.Metric("x", b.Field("x"))
	})
	set, err := data.New(data.X([]float32{0}, 1, 1))
	if err != nil {
		return err
	}
	for batch, batchErr := range set.Batches(1).All() {
		err = errors.Join(err, batchErr, step.Prepare(ctx, s.state, batch))
	}
	return errors.Join(err, step.Close())
}

func (s *ckptState) saveState(ctx context.Context) error {
	content, err := s.state.Content(ctx)
	if err != nil {
		return err
	}
	s.step++
	return s.async.Save(ctx, s.step, content)
}

func (s *ckptState) clear(ctx context.Context) error {
	err := s.async.Wait(ctx)
	saved, globErr := filepath.Glob(filepath.Join(s.dir, "lazo", "step-*"))
	err = errors.Join(err, globErr)
	for _, path := range append(saved, s.rawPath()) {
		err = errors.Join(err, os.RemoveAll(path))
	}
	syncDisks()
	return err
}

func (s *ckptState) nothing(context.Context) error { return nil }

func (s *ckptState) rawPath() string { return filepath.Join(s.dir, "raw") }

func (s *ckptState) save(ctx context.Context) error {
	s.step++
	return s.folder.Save(ctx, s.step, s.content)
}

func (s *ckptState) writeRaw(context.Context) error {
	file, err := os.Create(s.rawPath())
	if err != nil {
		return err
	}
	for _, t := range s.content.Tensors {
		if _, err := file.Write(t.Data); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return errors.Join(file.Sync(), file.Close())
}

func (s *ckptState) readRaw(context.Context) error {
	file, err := os.Open(s.rawPath())
	if err != nil {
		return err
	}
	for _, t := range s.content.Tensors {
		if _, err := io.ReadFull(file, make([]byte, len(t.Data))); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return file.Close()
}

func (s *ckptState) load(ctx context.Context) error {
	c, err := s.folder.Newest(ctx)
	if err == nil && len(c.Tensors) != ckptTensors {
		err = fmt.Errorf("%d tensors came back, expected %d", len(c.Tensors), ckptTensors)
	}
	return err
}
