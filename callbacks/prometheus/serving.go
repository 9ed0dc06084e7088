package prometheus

import (
	"strconv"

	"github.com/lazo-ml/lazo/serve"
)

// Served counts a request of a server: it is the Observe of [serve.Options].
func (m *Metrics) Served(s serve.Served) {
	model := label(s.Model)
	m.requests.WithLabelValues(model, strconv.Itoa(s.Status)).Inc()
	m.latencies.WithLabelValues(model).Observe(s.Duration.Seconds())
	if s.Rows > 0 {
		m.examples.WithLabelValues(model).Add(float64(s.Rows))
		m.queued.WithLabelValues(model).Observe(s.Queued.Seconds())
	}
}
