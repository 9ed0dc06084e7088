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

// Report is what a step will cost on a machine. All figures are of one device and one step unless they say otherwise.
type Report struct {
	// Program and Target are their names; Devices is how many the step was compiled for.
	Program, Target string
	Devices         int
	// Division says in words how the step is divided over the devices.
	Division string
	// Batch is how many examples a step has, over all devices; 0 if nothing says so.
	Batch int

	Fit      Fit
	Memory   xla.Memory
	Counts   *cost.Counts // nil where the step does not fit, and nothing was compiled
	Estimate Estimate

	// Compiled is how long the compiler took, and Compiler which it was.
	Compiled time.Duration
	Compiler string
}

// Fit says whether a step fits into a device's memory.
type Fit struct {
	Fits bool
	// Needs and Has are bytes of a device: what the step takes, and what there is.
	Needs, Has int64
	// By says who decided: the compiler, or the sum of the program's memory against the machine's figure.
	By string
}

// Over is by how many bytes a step does not fit; negative where room is left.
func (f Fit) Over() int64 { return f.Needs - f.Has }

// Estimate is of the time of a step: from the largest of its parts, as if all went on at once, to their sum, by what
// the machine's vendor says it does at best. It is an estimate: it knows nothing of latencies, of kernels that do not
// reach the peak, nor of the host, so a step may take longer than either.
type Estimate struct {
	// Compute, Memory and Links are the times that the products of matrices, the traffic of memory and the exchange take
	// at the machine's peak rates; 0 where there is nothing to do, or the vendor publishes no rate.
	Compute, Memory, Links time.Duration
	// Low is the largest of the three, as if all went on at once, and High their sum, as if one came behind the other.
	Low, High time.Duration
	// Missing says which figures an estimate would need and does not have.
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
		e.Missing = append(e.Missing, fmt.Sprintf("the rate of operations that are no products on %s: they count by their memory alone", t.Machine.Kind))
	}
	if t.Machine.Bandwidth > 0 {
		memory = c.Bytes / t.Machine.Bandwidth
	}
	if sent := c.Sent(); sent > 0 {
		rate := t.Machine.Links
		if t.Hosts() > 1 {
			// A ring through hosts enters and leaves each host once, over all of its network cards.
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

// seconds are a duration; one too long for it is the longest.
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

// unfit reads the error of a compiler that found that a program does not fit.
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

// binary reads XLA's sizes: "15.75" and "G" are 15.75 GiB.
func binary(number, unit string) (int64, error) {
	x, err := strconv.ParseFloat(number, 64)
	shift := map[string]int{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[unit]
	if err == nil && (x < 0 || x > 1<<20) {
		err = fmt.Errorf("%s%s bytes", number, unit)
	}
	return int64(x * float64(int64(1)<<shift)), err
}
