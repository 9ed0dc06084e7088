package prometheus

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/serve"
)

// Serving returns h with counts of its requests by status code, and their latencies, by the route of its
// [http.ServeMux] and the path's value "name", the model.
func (m *Metrics) Serving(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.inFlight.Inc()
		begin, response := time.Now(), &response{ResponseWriter: w, code: http.StatusInternalServerError}
		defer func() {
			m.inFlight.Dec()
			route, model := label(cmp.Or(r.Pattern, "other")), label(r.PathValue("name"))
			if response.code == http.StatusNotFound { // names that clients invent
				model = ""
			}
			m.requests.WithLabelValues(route, model, strconv.Itoa(response.code)).Inc()
			m.latencies.WithLabelValues(route, model).Observe(time.Since(begin).Seconds())
		}()
		h.ServeHTTP(response, r)
		if !response.wrote {
			response.code = http.StatusOK
		}
	})
}

// response has the code 500 until a handler writes one: it may panic.
type response struct {
	http.ResponseWriter
	code  int
	wrote bool
}

func (r *response) WriteHeader(code int) {
	if r.wrote {
		return
	}
	r.ResponseWriter.WriteHeader(code)
	if code >= 200 { // else others follow
		r.code, r.wrote = code, true
	}
}

func (r *response) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Predictor returns p with the sizes of its batches and their times, for [serve.New].
func (m *Metrics) Predictor(model string, p serve.Predictor) serve.Predictor {
	return &predictor{p, m.batches.WithLabelValues(label(model)), m.predictSeconds.WithLabelValues(label(model))}
}

type predictor struct {
	serve.Predictor
	examples, seconds client.Observer
}

func (p *predictor) Answer(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	begin := time.Now()
	defer func() { p.seconds.Observe(time.Since(begin).Seconds()) }()
	if len(batch.Fields) > 0 {
		p.examples.Observe(float64(batch.Fields[0].Array.Len()))
	}
	return p.Predictor.Answer(ctx, batch)
}

// State returns the value with p's optional methods, such as InputNames.
func (p *predictor) State() any {
	if s, ok := p.Predictor.(abilities.Stateful); ok {
		return s.State()
	}
	return p.Predictor
}

// Queue adds the number of a model's waiting examples, which waiting returns at each scrape.
func (m *Metrics) Queue(model string, waiting func() int) {
	m.queues.mu.Lock()
	defer m.queues.mu.Unlock()
	m.queues.waiting[label(model)] = waiting
}

type queues struct {
	mu      sync.Mutex
	waiting map[string]func() int
}

var queueDesc = desc("lazo_serving_queue_examples", "Examples that wait for a batch.", "model")

func (q *queues) Describe(to chan<- *client.Desc) { to <- queueDesc }

func (q *queues) Collect(to chan<- client.Metric) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for model, waiting := range q.waiting {
		to <- client.MustNewConstMetric(queueDesc, client.GaugeValue, float64(waiting()), model)
	}
}
