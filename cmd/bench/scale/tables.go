package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

func header(cells ...string) string {
	return row(cells...) + "|" + strings.Repeat("---|", len(cells)) + "\n"
}

func digits(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x >= 100:
		return grouped(math.Round(x))
	case x >= 10:
		return trimmed(fmt.Sprintf("%.1f", x))
	}
	return trimmed(fmt.Sprintf("%.*f", 2+max(0, -int(math.Floor(math.Log10(x)))), x))
}

func trimmed(text string) string {
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func grouped(x float64) string {
	text := fmt.Sprintf("%.0f", x)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func seconds(s float64) string {
	switch {
	case s >= 1:
		return digits(s) + " s"
	case s >= 1e-3:
		return digits(1e3*s) + " ms"
	}
	return digits(1e6*s) + " µs"
}

func size(bytes float64) string {
	switch {
	case bytes >= 1e8:
		return digits(bytes/1e6) + " MB"
	case bytes >= 1<<20:
		return digits(bytes/(1<<20)) + " MiB"
	}
	return digits(bytes/(1<<10)) + " KiB"
}

func machineText(lines []measured, p prices) string {
	m := lines[0]
	text := fmt.Sprintf("%d processors, %s, %s. A processor computes %s GFLOP/s of a step of dense layers.", m.CPUs, m.MPI, m.Versions["go"], digits(p.rate/1e9))
	if m.Load > float64(m.CPUs)/4 {
		text += fmt.Sprintf(" **The machine was busy with other work** (%s runnable processes at the start): sums and steps take less on an idle machine, "+
			"and the differences and ratios of steps are noisy.", digits(m.Load))
	}
	return text + "\n"
}

var measuredRanks = []int{2, 4, 8}

func sumsTable(lines []measured) (string, error) {
	cells := []string{"bytes"}
	for _, n := range measuredRanks {
		cells = append(cells, fmt.Sprintf("%d ranks: MPI", n), "in a program", "ratio")
	}
	text := header(cells...)
	var bytes []int
	for _, m := range lines {
		if m.Workload == "exchange" && m.Variant == "bare" && !slices.Contains(bytes, m.Bytes) {
			bytes = append(bytes, m.Bytes)
		}
	}
	slices.Sort(bytes)
	for _, b := range bytes {
		cells := []string{size(float64(b))}
		for _, n := range measuredRanks {
			bare, err := one(lines, "exchange", "bare", "shared memory", n, b)
			if err != nil {
				return "", err
			}
			program, err := one(lines, "exchange", "program", "shared memory", n, b)
			if err != nil {
				return "", err
			}
			cells = append(cells, seconds(bare.Median/1e6), seconds(program.Median/1e6), fmt.Sprintf("%.2f", program.Median/bare.Median))
		}
		text += row(cells...)
	}
	return text, nil
}

func stepsTable(lines []measured) (string, error) {
	text := header("model", "ranks", "gradients", "batch of a rank", "sum by MPI alone", "step without exchange", "with", "difference", "by the sum alone")
	for _, name := range []string{"mlp 2.0 M", "mlp 25 M"} {
		for _, n := range measuredRanks {
			var of [4]measured
			for i, what := range []string{"bare sum", "without exchange", "with exchange", "exchange"} {
				m, err := one(lines, "exchange", name+", "+what, "shared memory", n, 0)
				if err != nil {
					return "", err
				}
				of[i] = m
			}
			text += row(name, fmt.Sprint(n), size(float64(of[0].Bytes)), fmt.Sprint(of[0].Batch), seconds(of[0].Median/1e3), seconds(of[1].Median/1e3),
				seconds(of[2].Median/1e3), seconds(of[3].Median/1e3), fmt.Sprintf("%.2f", of[3].Ratio))
		}
	}
	return text, nil
}

func fitTable(lines []measured) (string, error) {
	text := header("sums of", "latency of a message", "a byte in caches", "a byte beyond", "fitted to", "off by a factor of (median, worst)", "held out", "off by (median, worst)")
	cpus := lines[0].CPUs
	all := sumsOver(lines, "shared memory")
	for _, part := range []struct {
		name string
		of   func(sum) bool
		over string
	}{
		{"ranks with a processor each", func(m sum) bool { return m.ranks <= cpus }, "shared memory"},
		{"ranks that share processors", func(m sum) bool { return m.ranks > cpus }, "shared memory"},
		{"ranks with a processor each, by TCP over loopback", func(m sum) bool { return m.ranks <= cpus }, "tcp"},
	} {
		if part.over != "shared memory" {
			all = sumsOver(lines, part.over)
		}
		var seen, unseen []sum
		for _, m := range all {
			switch {
			case !part.of(m):
			case heldOut(m):
				unseen = append(unseen, m)
			default:
				seen = append(seen, m)
			}
		}
		s, err := fitted(seen, cpus)
		if err != nil {
			return "", fmt.Errorf("%s: %w", part.name, err)
		}
		off := func(list []sum) string {
			if len(list) == 0 {
				return "none"
			}
			f := errorsOf(s, list)
			return fmt.Sprintf("%.2f, %.2f", f[len(f)/2], f[len(f)-1])
		}
		text += row(part.name, seconds(s.latency), digits(1e9*s.cached)+" ns", digits(1e9*s.memory)+" ns", fmt.Sprint(len(seen), " sums"), off(seen), fmt.Sprint(len(unseen), " sums"), off(unseen))
	}
	return text, nil
}

// control connections: variant, title, unit factor, whether it grows per rank
var controlRows = []struct {
	variant, name string
	show          func(float64) string
	value         func(measured) float64
}{
	{"join", "rank 0's Join, when the others are there", seconds, func(m measured) float64 { return m.Median }},
	{"join", "its processor time", seconds, func(m measured) float64 { return m.CPU[0] }},
	{"agree", "an agreement of 3 words by control connections", seconds, func(m measured) float64 { return m.Median / 1e6 }},
	{"watch", "signs of life at rank 0, of a processor", func(x float64) string { return digits(x) + " %" }, func(m measured) float64 { return m.Median }},
	{"watch traffic", "their bytes a second, both ways", func(x float64) string { return size(1e3 * x) }, func(m measured) float64 { return m.Median }},
	{"watch", "memory of rank 0", func(x float64) string { return digits(x) + " MB" }, func(m measured) float64 { return float64(m.RSSMB) }},
	{"end", "one is killed: all have ended after", seconds, func(m measured) float64 { return m.Median }},
}

var controlSizes = []int{16, 64, 256}

func controlTable(lines []measured) (string, error) {
	cells := []string{"processes"}
	for _, n := range controlSizes {
		cells = append(cells, fmt.Sprint(n))
	}
	text := header(append(cells, "4,096, estimated")...)
	text += row("sockets of rank 0", "15", "63", "255", "4,095")
	for _, r := range controlRows {
		cells := []string{r.name}
		var values []float64
		for _, n := range controlSizes {
			m, err := one(lines, "control", r.variant, "loopback", n, 0)
			if err != nil {
				return "", err
			}
			values = append(values, r.value(m))
			cells = append(cells, r.show(r.value(m)))
		}
		text += row(append(cells, r.show(straight(values)))...)
	}
	return text, nil
}

// straight extrapolates the line through the two largest sizes to 4,096.
func straight(values []float64) float64 {
	last, n := len(values)-1, controlSizes
	slope := (values[last] - values[last-1]) / float64(n[last]-n[last-1])
	return values[last] + max(0, slope)*float64(4096-n[last])
}

var estimatedSizes = []float64{agreedBytes, 64 << 10, 1 << 20, 100e6}

func algorithmsTable(p prices) string {
	text := sized("bytes", "algorithm")
	l := p.ethernet("25 Gb/s Ethernet")
	for _, bytes := range estimatedSizes {
		name := size(bytes)
		if bytes < 1024 {
			name = digits(bytes)
		}
		for _, a := range algorithms {
			cells := []string{name, a.name}
			for _, n := range sizes {
				cells = append(cells, seconds(a.seconds(n, bytes, l)))
			}
			text += row(cells...)
		}
	}
	return text
}

func sized(cells ...string) string {
	for _, n := range sizes {
		cells = append(cells, grouped(float64(n)))
	}
	return header(cells...)
}

func weakTable(p prices) (string, error) {
	text := sized("model", "on", "examples of a device", "computing")
	for i := range p.models["h100"] {
		for _, f := range platforms {
			m := p.models[f.kind][i]
			compute, memory := p.step(f.kind, m, float64(m.batch))
			cells := []string{m.name, f.name, fmt.Sprint(m.batch), seconds(max(compute, memory))}
			if !p.fits(f.kind, m) {
				cells[3] = "does not fit"
				text += row(append(cells, "", "", "", "")...)
				continue
			}
			for _, n := range sizes {
				exchange := p.over(f.kind, f.network, m, n)
				cells = append(cells, seconds(exchange)+"; "+efficiency(f.kind, compute, memory, exchange))
			}
			text += row(cells...)
		}
	}
	return text, nil
}

func efficiency(kind string, compute, memory, exchange float64) string {
	least, most := bounds(kind, compute, memory, exchange)
	leastAlone, mostAlone := bounds(kind, compute, memory, 0)
	low, high := 100*mostAlone/most, 100*leastAlone/least
	if low > high {
		low, high = high, low
	}
	if kind == "cpu" || high-low < 1 {
		return digits(math.Round(low)) + " %"
	}
	return fmt.Sprintf("%.0f–%.0f %%", low, high)
}

func strongTable(p prices) (string, error) {
	text := sized("model", "on", "whole batch", "one device")
	for i := range p.models["h100"] {
		for _, f := range platforms {
			m := p.models[f.kind][i]
			time := func(n int) (least, most float64) {
				compute, memory := p.step(f.kind, m, float64(m.whole)/float64(n))
				exchange := 0.0
				if n > 1 {
					exchange = p.over(f.kind, f.network, m, n)
				}
				return bounds(f.kind, compute, memory, exchange)
			}
			if !p.fits(f.kind, m) {
				text += row(m.name, f.name, grouped(float64(m.whole)), "does not fit", "", "", "", "")
				continue
			}
			_, alone := time(1)
			cells := []string{m.name, f.name, grouped(float64(m.whole)), seconds(alone)}
			for _, n := range sizes {
				if n > m.whole {
					cells = append(cells, "–")
					continue
				}
				_, most := time(n)
				cells = append(cells, seconds(most)+"; ×"+digits(alone/most))
			}
			text += row(cells...)
		}
	}
	return text, nil
}

func lateTable(p prices) string {
	cells := []string{"", "8", "64", "512", "4,096"}
	text := header(cells...)
	late := []string{"the last of n ranks is late by, in means of a rank's delay"}
	for _, n := range sizes {
		late = append(late, digits(slowest(n)))
	}
	text += row(late...)
	within := link{1e-6, 100e9}
	l := p.ethernet("25 Gb/s Ethernet")
	const each, bytes = 8, 100e6
	two, one := []string{"100 MB over hosts of 8 ranks, by hosts, simulated"}, []string{"100 MB in one ring through all of their ranks, simulated"}
	for _, n := range sizes {
		if n > 512 {
			shared := l
			shared.bandwidth /= each
			two = append(two, seconds(ring(each, bytes, within)+ring(n/each, bytes/each, shared))+" by formula")
			one = append(one, seconds(ring(n, bytes, l))+" by formula")
			continue
		}
		net := hosts(n/each, each, within, l)
		if n == each {
			two = append(two, seconds(slices.Max(simulate(net, ringSchedule(n, bytes), nil))))
			one = append(one, two[len(two)-1])
			continue
		}
		two = append(two, seconds(slices.Max(simulate(net, hostsSchedule(n/each, each, bytes), nil))))
		one = append(one, seconds(slices.Max(simulate(net, ringSchedule(n, bytes), nil))))
	}
	return text + row(two...) + row(one...)
}
