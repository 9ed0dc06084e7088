package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/xla/plan"
)

type measured struct {
	Workload, Variant, Unit, Over, MPI string
	Median, Min, Ratio, Load           float64
	Ranks, Bytes, Batch, CPUs          int
	RSSMB                              int       `json:"rss_mb"`
	CPU                                []float64 `json:"cpu_s"`
	Versions                           map[string]string
}

func readMeasured(path string) (list []measured, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for d := json.NewDecoder(bufio.NewReader(f)); d.More(); {
		var m measured
		if err := d.Decode(&m); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(list)+1, err)
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no measurements", path)
	}
	return list, nil
}

func one(list []measured, workload, variant, over string, ranks, bytes int) (measured, error) {
	for _, m := range list {
		if m.Workload == workload && m.Variant == variant && m.Over == over && m.Ranks == ranks && (bytes == 0 || m.Bytes == bytes) {
			return m, nil
		}
	}
	return measured{}, fmt.Errorf("nothing measured of %s, %s, over %s by %d ranks, %d bytes", workload, variant, over, ranks, bytes)
}

func sumsOver(list []measured, over string) (sums []sum) {
	for _, m := range list {
		if m.Workload == "exchange" && m.Variant == "bare" && m.Over == over {
			sums = append(sums, sum{m.Ranks, float64(m.Bytes), m.Min / 1e6})
		}
	}
	return sums
}

type model struct {
	name       string
	parameters float64
	bytes      float64 // of the all-reduce
	calls      int     // MPI exchanges
	// per example, and fixed per device: FLOPs and bytes of memory traffic
	exampleFLOPs, fixedFLOPs     float64
	exampleTraffic, fixedTraffic float64
	batch                        int // per device, weak scaling
	whole                        int // strong scaling
}

type prices struct {
	cores    int
	rate     float64 // measured FLOP/s per processor
	models   map[string][]model
	networks map[string]map[string]float64
	machines map[string]plan.Machine
}

func readPrices(folder string, lines []measured, cores int) (prices, error) {
	p := prices{cores: cores, models: map[string][]model{}, networks: map[string]map[string]float64{}, machines: map[string]plan.Machine{}}
	if cores < 1 {
		return p, fmt.Errorf("%d processors a host, expected 1 at least", cores)
	}
	for _, m := range plan.Machines() {
		p.machines[m.Kind] = m
	}
	rows, err := readTable(filepath.Join(folder, "networks.tsv"), 4)
	if err != nil {
		return p, err
	}
	for _, r := range rows {
		x, err := strconv.ParseFloat(r[2], 64)
		if err != nil || x <= 0 {
			return p, fmt.Errorf("networks.tsv: %s of %s is %q, expected a number above 0", r[1], r[0], r[2])
		}
		if p.networks[r[0]] == nil {
			p.networks[r[0]] = map[string]float64{}
		}
		p.networks[r[0]][r[1]] = x
	}
	for _, kind := range []string{"h100", "v5e"} {
		if p.models[kind], err = readModels(filepath.Join(folder, "models.tsv"), kind); err != nil {
			return p, err
		}
	}
	p.models["cpu"] = slices.Clone(p.models["h100"])
	for i := range p.models["cpu"] {
		p.models["cpu"][i].batch = 128 >> (2 * i) // 128, 32, 8
	}
	p.rate, err = rate(lines)
	return p, err
}

// One processor's FLOP/s, with as many ranks as processors and no exchange.
func rate(lines []measured) (float64, error) {
	for _, m := range lines {
		if m.Workload == "exchange" && m.Variant == "mlp 2.0 M, without exchange" && m.Ranks == m.CPUs {
			// 2 FLOPs per parameter and example forward, 4 backward.
			return 6 * float64(m.Bytes/4) * float64(m.Batch) / (m.Min / 1e3), nil
		}
	}
	return 0, errors.New("no step without exchange by as many ranks as processors")
}

func readTable(path string, columns int) (rows [][]string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for n, l := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(l, "#") {
			continue
		}
		fields := strings.Split(l, "\t")
		if len(fields) != columns || slices.Contains(fields, "") {
			return nil, fmt.Errorf("%s: line %d has %d columns, expected %d", path, n+1, len(fields), columns)
		}
		rows = append(rows, fields)
	}
	return rows, nil
}

func readModels(path, kind string) (list []model, err error) {
	rows, err := readTable(path, 8)
	if err != nil {
		return nil, err
	}
	type counted struct{ devices, batch, flops, traffic, bytes, calls float64 }
	var names []string
	plans := map[string][]counted{}
	for _, r := range rows {
		if r[1] != kind {
			continue
		}
		var x [6]float64
		for i, text := range r[2:] {
			if x[i], err = strconv.ParseFloat(text, 64); err != nil || x[i] <= 0 {
				return nil, fmt.Errorf("%s: %s on %s: %q is not a number above 0", path, r[0], kind, text)
			}
		}
		if plans[r[0]] == nil {
			names = append(names, r[0])
		}
		plans[r[0]] = append(plans[r[0]], counted{x[0], x[1], x[2], x[3], x[4], x[5]})
	}
	for _, name := range names {
		if len(plans[name]) != 2 {
			return nil, fmt.Errorf("%s: %s was planned for %d numbers of %s, expected 2", path, name, len(plans[name]), kind)
		}
		few, many := plans[name][0], plans[name][1]
		m := model{name: name, bytes: few.bytes, calls: int(few.calls), whole: int(few.batch), batch: int(few.batch / few.devices), parameters: few.bytes / 4}
		// two plans separate divided and fixed costs
		split := func(a, b float64) (example, fixed float64) {
			example = (a - b) / (few.batch/few.devices - many.batch/many.devices)
			return example, max(0, a-example*few.batch/few.devices)
		}
		m.exampleFLOPs, m.fixedFLOPs = split(few.flops, many.flops)
		m.exampleTraffic, m.fixedTraffic = split(few.traffic, many.traffic)
		list = append(list, m)
	}
	return append(list, byFormula()), nil
}

func byFormula() model {
	const blocks, width, places, vocabulary = 20, 2048, 2048, 32_000
	parameters := float64(12*blocks*width*width + vocabulary*width)
	return model{
		name: fmt.Sprintf("transformer %.2f G, by formula", parameters/1e9), parameters: parameters, bytes: 4 * parameters, calls: 6*blocks + 3,
		exampleFLOPs: places * (6*parameters + 12*blocks*places*width), fixedTraffic: 28 * parameters,
		batch: 4, whole: 1024,
	}
}

// In seconds; memory is 0 if unknown.
func (p prices) step(kind string, m model, examples float64) (compute, memory float64) {
	flops, traffic := m.exampleFLOPs*examples+m.fixedFLOPs, m.exampleTraffic*examples+m.fixedTraffic
	if kind == "cpu" {
		return flops / (p.rate * float64(p.cores)), 0
	}
	machine := p.machines[kind]
	peak := machine.Matrix["f32"]
	if machine.Plugin == "tpu" {
		peak = machine.Matrix["bf16"] // TPUs multiply float32 this way
	}
	return flops / peak, traffic / machine.Bandwidth
}

// fits: parameters, gradients and Adam's moments leave room in memory.
func (p prices) fits(kind string, m model) bool {
	return kind == "cpu" || 16*m.parameters < 0.9*float64(p.machines[kind].Memory)
}

func (p prices) ethernet(network string) link {
	return link{p.networks["Ethernet"]["latency"], p.networks[network]["bandwidth"]}
}

func (p prices) over(kind, network string, m model, n int) float64 {
	machine := p.machines[kind]
	switch kind {
	case "cpu": // arrays in sequence, and the two agreements
		l := p.ethernet(network)
		each, _ := fastest(algorithms, n, m.bytes/float64(m.calls), l)
		return float64(m.calls)*each + agreements*doubling(n, agreedBytes, l)
	case "h100":
		within := link{p.networks["h100 within"]["latency"], machine.Links}
		between := link{p.networks["h100 between"]["latency"], machine.Network}
		if n <= machine.Host {
			return ring(n, m.bytes, within)
		}
		return hierarchical(n/machine.Host, machine.Host, m.bytes, within, between)
	}
	const slice = 256
	latency := p.networks["v5e within"]["latency"]
	if n <= slice {
		return plane(n, m.bytes, machine.Links, latency)
	}
	between := link{p.networks["v5e between"]["latency"], p.networks["v5e between"]["bandwidth"]}
	across, _ := fastest(algorithms, n/slice, m.bytes/slice, between)
	return plane(slice, m.bytes, machine.Links, latency) + across
}

// Small sums per step: the loop's, and the comparison of batches and runs.
const (
	agreements  = 2
	agreedBytes = 22 * 8
)

type platform struct{ name, kind, network string }

var platforms = []platform{
	{"CPU, 10 Gb/s", "cpu", "10 Gb/s Ethernet"},
	{"CPU, 25 Gb/s", "cpu", "25 Gb/s Ethernet"},
	{"CPU, 100 Gb/s", "cpu", "100 Gb/s Ethernet"},
	{"H100", "h100", ""},
	{"v5e", "v5e", ""},
}

var sizes = []int{8, 64, 512, 4096}

// With full overlap and without; CPUs do not overlap.
func bounds(kind string, compute, memory, exchange float64) (least, most float64) {
	most = compute + memory + exchange
	if kind == "cpu" {
		return most, most
	}
	return math.Max(math.Max(compute, memory), exchange), most
}
