package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

var checked = []struct {
	workload, variant string
	batch, steps      int
}{
	{"tiny", "metric", 8, 10_000}, {"tiny", "one by one", 8, 10_000}, {"linear", "metric", 32, 3_000}, {"mlp", "metric", 128, 60}, {"cnn", "metric", 32, 10},
	{"matmul", "1024^3", 0, 0}, {"inplace", "150", 0, 0}, {"images", "jpeg", 0, 0}, {"images", "png", 0, 0}, {"csv", "numbers", 0, 0}, {"csv", "classes", 0, 0},
}

// A workload is slower if its median exceeds slowerBy and the difference is unlikely by chance.
const (
	slowerBy     = 1.03
	slowerChance = 0.01
)

var errSlower = errors.New("slower than before")

// check measures the commands, before and now, in turns, and prints a row for each workload.
func check(ctx context.Context, b *bench, commands [2]string) error {
	earlier, err := readHistory(b.history)
	if err != nil {
		return err
	}
	records, err := checkAll(ctx, b, commands)
	if len(records) == 0 {
		return err
	}
	return errors.Join(err, keepHistory(b, earlier, records))
}

// checkAll also returns the records before an error.
func checkAll(ctx context.Context, b *bench, commands [2]string) (records []record, err error) {
	dir, err := os.MkdirTemp("", "lazo-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	of := record{Date: time.Now().UTC().Truncate(time.Second), Commit: b.commit, Reference: b.reference, Processor: processor(), Load: b.load}
	fmt.Fprintln(b.stdout, "| workload | variant | unit | before | now | time, now/before | chance | |\n|---|---|---|---|---|---|---|---|")
	for _, c := range checked {
		if !b.wants(c.variant) {
			continue
		}
		args := []string{"-workload", c.workload, "-variant", c.variant, "-plugin", b.plugin, "-repeats", strconv.Itoa(b.repeats), "-turns", "-data", dir}
		if c.batch > 0 {
			args = append(args, "-batch", strconv.Itoa(c.batch), "-steps", strconv.Itoa(c.steps))
		}
		lines, err := inTurns(ctx, b.repeats, commands, args)
		if err != nil {
			return records, fmt.Errorf("%s %s: %w", c.workload, c.variant, err)
		}
		r := of
		r.Workload, r.Variant, r.Unit, r.Before, r.Now = c.workload, c.variant, lines[0].Unit, lines[0].Median, lines[1].Median
		r.comparison = compare(timesOf(lines[0]), timesOf(lines[1]))
		fmt.Fprintln(b.stdout, r.row())
		records = append(records, r)
	}
	if slices.ContainsFunc(records, record.slower) {
		return records, errSlower
	}
	return records, nil
}

func inTurns(ctx context.Context, repeats int, commands [2]string, args []string) (lines [2]line, err error) {
	var sides [2]*turnSide
	for i, command := range commands {
		s, startErr := startSide(ctx, command, args)
		if startErr != nil {
			return lines, startErr
		}
		sides[i] = s
		defer func() { err = errors.Join(err, s.close()) }()
		if err := s.await(nil); err != nil {
			return lines, err
		}
	}
	for n := range repeats {
		for k := range sides {
			i := (n + k) % 2
			var result *line
			if n == repeats-1 {
				result = &lines[i]
			}
			if _, err := io.WriteString(sides[i].stdin, "\n"); err != nil {
				return lines, err
			}
			if err := sides[i].await(result); err != nil {
				return lines, fmt.Errorf("%s: %w", commands[i], err)
			}
		}
	}
	return lines, nil
}

type turnSide struct {
	*exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Scanner
}

func startSide(ctx context.Context, command string, args []string) (*turnSide, error) {
	c := exec.CommandContext(ctx, command, args...)
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return &turnSide{c, stdin, bufio.NewScanner(stdout)}, nil
}

func (s *turnSide) await(result *line) error {
	for s.out.Scan() {
		switch text := s.out.Text(); {
		case result == nil && text == "ready":
			return nil
		case result != nil && strings.HasPrefix(text, "{"):
			return json.Unmarshal([]byte(text), result)
		}
	}
	return errors.Join(errors.New("it ended without a result"), s.out.Err())
}

func (s *turnSide) close() error {
	err := s.stdin.Close()
	for s.out.Scan() {
	}
	return errors.Join(err, s.Wait())
}

func timesOf(l line) []float64 {
	times := slices.Clone(l.Values)
	if !slices.Contains([]string{"s", "ms", "us/step", "ms/step", "us/run", "ratio"}, l.Unit) {
		for i, v := range times {
			times[i] = 1 / v
		}
	}
	return times
}

type comparison struct {
	Ratio  float64 `json:"ratio"`  // of median times
	Chance float64 `json:"chance"` // probability for equal programs
}

func (c comparison) slower() bool { return c.Ratio > slowerBy && c.Chance < slowerChance }

// compare is a one-sided Mann-Whitney test with the normal approximation, corrected for continuity and ties; accurate
// from seven repeats.
func compare(before, now []float64) comparison {
	u := 0.0
	for _, x := range now {
		for _, y := range before {
			switch cmp.Compare(x, y) {
			case 1:
				u++
			case 0:
				u += 0.5
			}
		}
	}
	m, n := float64(len(before)), float64(len(now))
	all := slices.Sorted(slices.Values(slices.Concat(before, now)))
	ties := 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j] == all[i] {
			j++
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	deviation := math.Sqrt(m * n / 12 * (m + n + 1 - ties/((m+n)*(m+n-1))))
	chance := 1.0
	if deviation > 0 {
		chance = math.Erfc((u-m*n/2-0.5)/deviation/math.Sqrt2) / 2
	}
	return comparison{medianOf(now) / medianOf(before), chance}
}
