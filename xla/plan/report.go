package plan

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/cost"
)

// Report is a step's cost, per device unless noted.
type Report struct {
	Program, Target string
	Devices         int
	// Division describes how the step is sharded.
	Division string
	// Batch is the examples of all devices per step, 0 if unknown.
	Batch int

	Fit      Fit
	Memory   xla.Memory
	Counts   *cost.Counts // nil if the compiler refused the step
	Estimate Estimate

	Compiled time.Duration
	Compiler string
}

// Fit is whether a step fits into a device's memory.
type Fit struct {
	Fits bool
	// Needs and Has are a device's bytes.
	Needs, Has int64
	// By is who decided: the compiler, or the memory of program and device.
	By string
}

// Over returns the missing bytes, negative if there is room.
func (f Fit) Over() int64 { return f.Needs - f.Has }

// Estimate is a range of a step's time at peak rates. Latencies, slower kernels and the host may add to High.
type Estimate struct {
	// Compute, Memory and Links are the times of computation, memory traffic and exchange; 0 without work or a
	// published rate.
	Compute, Memory, Links time.Duration
	// Low is their largest (full overlap), High their sum.
	Low, High time.Duration
	// Missing lists figures that the estimate lacks.
	Missing []string
}

func estimate(t Target, c *cost.Counts) Estimate {
	var e Estimate
	var compute, memory, links float64 // seconds
	for _, dtype := range slices.Sorted(maps.Keys(c.Matrix)) {
		flops := c.Matrix[dtype]
		rate, of := t.Machine.peak(dtype)
		switch {
		case rate == 0:
			e.Missing = append(e.Missing, fmt.Sprintf("the rate of %s products on %s: they are not in the estimate", dtype, t.Machine.Kind))
		default:
			if of != dtype && !strings.HasPrefix(dtype, of) {
				e.Missing = append(e.Missing, fmt.Sprintf("the rate of %s products on %s: that of %s is taken", dtype, t.Machine.Kind, of))
			}
			compute += flops / rate
		}
	}
	if t.Machine.Vector > 0 {
		compute += c.Vector / t.Machine.Vector
	} else if c.Vector > 0 {
		e.Missing = append(e.Missing, fmt.Sprintf("the rate of operations other than products on %s: only their memory is counted", t.Machine.Kind))
	}
	if t.Machine.Bandwidth > 0 {
		memory = c.Bytes / t.Machine.Bandwidth
	}
	if sent := c.Sent(); sent > 0 {
		rate := t.Machine.Links
		if t.Hosts() > 1 {
			// A ring enters and leaves each host once, over all its cards.
			within := t.Grid[2]
			if network := t.Machine.Network * float64(within); network == 0 || rate == 0 {
				rate = 0
			} else {
				rate = min(rate, network)
			}
		}
		if rate == 0 {
			e.Missing = append(e.Missing, fmt.Sprintf("the speed of the links of %s: the exchange is not in the estimate", t.Machine.Kind))
		} else {
			links = sent / rate
		}
	}
	if len(c.Uncounted) > 0 {
		e.Missing = append(e.Missing, "the FLOPs of what is not counted")
	}
	e.Compute, e.Memory, e.Links = seconds(compute), seconds(memory), seconds(links)
	e.Low, e.High = max(e.Compute, e.Memory, e.Links), e.Compute+e.Memory+e.Links
	return e
}

// seconds saturates.
func seconds(s float64) time.Duration {
	if s > 1e9 {
		return time.Duration(1 << 62)
	}
	return time.Duration(s * float64(time.Second))
}

var (
	outOfMemory = regexp.MustCompile(`(?i)required[^()]*\(([0-9.]+)([KMGT]?)\) exceeds available[^()]*\(([0-9.]+)([KMGT]?)\)`)
	usedOf      = regexp.MustCompile(`Used ([0-9.]+)([KMGT]?) of ([0-9.]+)([KMGT]?) hbm`)
)

func unfit(err error) (Fit, bool) {
	if !errors.Is(err, xla.ErrOutOfMemory) {
		return Fit{}, false
	}
	for _, pattern := range []*regexp.Regexp{outOfMemory, usedOf} {
		if m := pattern.FindStringSubmatch(err.Error()); m != nil {
			needs, err := binary(m[1], m[2])
			has, err2 := binary(m[3], m[4])
			if err == nil && err2 == nil {
				return Fit{Needs: needs, Has: has, By: "the compiler"}, true
			}
		}
	}
	return Fit{}, false
}

// binary reads "15.75", "G" as 15.75 GiB.
func binary(number, unit string) (int64, error) {
	x, err := strconv.ParseFloat(number, 64)
	shift := map[string]int{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[unit]
	if err == nil && (x < 0 || x > 1<<20) {
		err = fmt.Errorf("%s%s bytes", number, unit)
	}
	return int64(x * float64(int64(1)<<shift)), err
}
