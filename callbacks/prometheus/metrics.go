package prometheus

import (
	"strconv"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/lazo-ml/lazo/xla"
)

// Metrics are a process's metrics. The registry takes further ones.
type Metrics struct {
	*client.Registry
	runs    *runs
	devices *devices

	saves, saveFailures, saveSeconds *client.CounterVec
	lastSave                         *client.GaugeVec

	requests, examples *client.CounterVec
	latencies, queued  *client.HistogramVec
}

// New returns this process's metrics, with Go's and the operating system's.
func New() *Metrics {
	counter := func(name, help string, labels ...string) *client.CounterVec {
		return client.NewCounterVec(client.CounterOpts{Name: name, Help: help}, labels)
	}
	seconds := func(name, help string, labels ...string) *client.HistogramVec { // to 33 s
		return client.NewHistogramVec(client.HistogramOpts{Name: name, Help: help, Buckets: client.ExponentialBuckets(0.0005, 2, 17)}, labels)
	}
	m := &Metrics{
		Registry: client.NewRegistry(),
		runs:     &runs{named: map[string]*run{}},
		devices:  &devices{},

		saves:        counter("lazo_checkpoint_saves_total", "Checkpoints written.", "run"),
		saveFailures: counter("lazo_checkpoint_failures_total", "Checkpoints that could not be written.", "run"),
		saveSeconds:  counter("lazo_checkpoint_save_seconds_total", "Time of writing checkpoints, also of failures.", "run"),
		lastSave:     client.NewGaugeVec(client.GaugeOpts{Name: "lazo_checkpoint_last_step", Help: "Step of the newest checkpoint."}, []string{"run"}),

		requests:  counter("lazo_serving_requests_total", "Requests answered, by status code.", "model", "code"),
		examples:  counter("lazo_serving_examples_total", "Examples of the inferences.", "model"),
		latencies: seconds("lazo_serving_request_seconds", "Time from a request to the end of its response.", "model"),
		queued:    seconds("lazo_serving_queue_seconds", "Part of it in which an inference waited for its batch.", "model"),
	}
	m.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.runs, m.devices, m.saves, m.saveFailures, m.saveSeconds, m.lastSave, m.requests, m.examples, m.latencies, m.queued)
	return m
}

func desc(name, help string, labels ...string) *client.Desc {
	return client.NewDesc(name, help, labels, nil)
}

func label(name string) string { return strings.ToValidUTF8(name, "\ufffd") }

// Devices adds the memory of a runtime's devices. A plugin without statistics, as the CPU's, has no series.
func (m *Metrics) Devices(r *xla.Runtime) {
	m.devices.mu.Lock()
	defer m.devices.mu.Unlock()
	m.devices.of = append(m.devices.of, r)
}

type memory interface {
	NumDevices() int
	DeviceMemory(n compute.DeviceNum) (xla.DeviceMemory, error)
}

type devices struct {
	mu sync.Mutex
	of []memory
}

var memoryDesc = desc("lazo_device_memory_bytes", "Memory of a device: in_use, peak, limit.", "device", "kind")

func (d *devices) Describe(to chan<- *client.Desc) { to <- memoryDesc }

func (d *devices) Collect(to chan<- client.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	device := 0
	for _, r := range d.of {
		for n := range r.NumDevices() {
			stats, err := r.DeviceMemory(compute.DeviceNum(n))
			for kind, v := range map[string]int64{"in_use": stats.InUse, "peak": stats.PeakInUse, "limit": stats.Limit} {
				if err == nil && v >= 0 {
					to <- client.MustNewConstMetric(memoryDesc, client.GaugeValue, float64(v), strconv.Itoa(device), kind)
				}
			}
			device++
		}
	}
}
