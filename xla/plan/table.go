package plan

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lazo-ml/lazo/xla/cost"
)

// WriteTable writes a report as a table.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(t, "%s on %s\n", r.Program, r.Target)
	row("devices", "%d; %s", r.Devices, r.Division)
	if r.Fit.Fits {
		row("memory", "fits: %s of %s, %s left (%s)", bytes(float64(r.Fit.Needs)), bytes(float64(r.Fit.Has)), bytes(float64(-r.Fit.Over())), r.Fit.By)
	} else {
		row("memory", "does not fit by %s: needs %s, has %s (%s)", bytes(float64(r.Fit.Over())), bytes(float64(r.Fit.Needs)), bytes(float64(r.Fit.Has)), r.Fit.By)
	}
	c := r.Counts
	if c == nil {
		return t.Flush()
	}
	row("", "arguments %s, outputs %s (%s in place of arguments), temporary %s", bytes(float64(r.Memory.Arguments)), bytes(float64(r.Memory.Outputs)),
		bytes(float64(r.Memory.Aliased)), bytes(float64(r.Memory.Temporary)))
	row("FLOPs a step", "%s a device, %s in all: %s", short(c.FLOPs()), short(c.FLOPs()*float64(max(c.Devices, 1))), kinds(c))
	row("memory traffic", "%s", bytes(c.Bytes))
	if len(c.Exchanged) == 0 {
		row("exchanged", "nothing")
	}
	for i, e := range c.Exchanged {
		name := "exchanged"
		if i > 0 {
			name = ""
		}
		along := "along no axis of the mesh"
		if e.Axes != "" {
			along = "along " + e.Axes
		}
		row(name, "%s %s %s, %d devices: a device sends %s", e.Kind, bytes(e.Bytes), along, e.Group, bytes(e.Sent))
	}
	e := r.Estimate
	row("estimate", "%s to %s a step, without latencies and the host: computing %s, memory %s, links %s", brief(e.Low), brief(e.High), brief(e.Compute), brief(e.Memory), brief(e.Links))
	notes := func(name string, list []string) {
		for _, text := range list {
			row(name, "%s", text)
			name = ""
		}
	}
	notes("  without", e.Missing)
	notes("not counted", c.Uncounted)
	notes("loops counted once", c.Unknown)
	row("compiled in", "%s", brief(r.Compiled))
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(t, "  largest values\n")
	for _, v := range c.Largest {
		fmt.Fprintf(t, "    %s\t%s\t%s\t%s\t%s\n", bytes(float64(v.Bytes)), v.Kind, v.Shape, v.Name, v.Where)
	}
	return t.Flush()
}

func kinds(c *cost.Counts) string {
	var list []string
	for _, dtype := range slices.Sorted(maps.Keys(c.Matrix)) {
		list = append(list, fmt.Sprintf("%s products %s", dtype, short(c.Matrix[dtype])))
	}
	list = append(list, "others "+short(c.Vector))
	if c.Transcendentals > 0 {
		list = append(list, short(c.Transcendentals)+" transcendentals in addition")
	}
	return strings.Join(list, ", ")
}

func bytes(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; (n >= 1024 || n <= -1024) && i < len(units)-1; i++ {
		n /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.2f %s", n, units[i])
}

func short(n float64) string {
	units := []string{"", " K", " M", " G", " T", " P", " E"}
	i := 0
	for ; n >= 1000 && i < len(units)-1; i++ {
		n /= 1000
	}
	if i == 0 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.2f%s", n, units[i])
}

func brief(d time.Duration) string {
	switch {
	case d >= 100*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d >= time.Microsecond:
		return d.Round(10 * time.Nanosecond).String()
	}
	return d.String()
}

// WriteGrowth writes a table of reports for machines of several sizes.
func WriteGrowth(w io.Writer, reports []*Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "target\tdevices\tmemory\tof\tFLOPs a device\ta device sends\testimate from\tto\tcompiled in\t")
	for _, r := range reports {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t", r.Target, r.Devices, bytes(float64(r.Fit.Needs)), bytes(float64(r.Fit.Has)))
		if r.Counts == nil {
			fmt.Fprintf(t, "does not fit by %s\t\t\t\t\t\n", bytes(float64(r.Fit.Over())))
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t\n", short(r.Counts.FLOPs()), bytes(r.Counts.Sent()), brief(r.Estimate.Low), brief(r.Estimate.High), brief(r.Compiled))
	}
	return t.Flush()
}
