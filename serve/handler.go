package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/shield"
)

// Options are a [Handler]'s limits and log. Negative values are errors.
type Options struct {
	// MaxBody bounds a request's body in bytes, also uncompressed; 0 means 16 MiB. It bounds a request's memory
	// (docs/security.md).
	MaxBody int64
	// Timeout limits a request from its body on, and the sending of its answer; 0 means a minute.
	Timeout time.Duration
	// Log gets requests and internal errors, of which a client gets only an id; nil: no log.
	Log *slog.Logger
	// Observe is called after each request, by many goroutines; nil: none.
	Observe func(Served)
}

// Served describes a finished request.
type Served struct {
	Method, Path string // as sent by the client
	// Model and Version are "" and 0 unless the handler has them.
	Model   string
	Version int
	Status  int // 499: the client has gone
	// Rows is 0 if an inference was refused before.
	Rows int
	// Received is uncompressed.
	Received, Sent int
	// Queued is the part of Duration in which an inference waited for its batch.
	Duration, Queued time.Duration
}

// Handler serves models by the Open Inference Protocol, version 2, as REST:
//
//	GET  /v2                              the server: name, version, extensions
//	GET  /v2/health/live                  200 while the process answers
//	GET  /v2/health/ready                 200 when all models are ready, and before Drain; else 503
//	GET  /v2/models/{name}                the model: its inputs and outputs
//	GET  /v2/models/{name}/config         the model in the form of Triton's model configuration
//	GET  /v2/models/{name}/ready          200 when the model is ready; else 503
//	POST /v2/models/{name}/infer          an inference
//	POST /v2/models/{name}/rows           rows of the table of a model with a preparation
//	POST /v2/repository/index             all models, with their versions and states
//
// Rows are a JSON list of objects by column, or one object, or by Content-Type text/csv a CSV file with a header. The
// answer is a list of objects, as the lines of lazo model predict. In an inference the columns are inputs of texts.
//
// /versions/{number} may follow a model's name. Datatypes are BOOL, INT8 to INT64, UINT8 to UINT64, FP32, FP64, and
// BYTES, texts. A tensor's data is a flat or nested list of JSON, or, by the extension
// for binary tensor data, bytes after the JSON. A body may be compressed by gzip or deflate. Invalid JSON, and unknown
// or repeated inputs and outputs, are refused before any element is read. An error is {"error": text} with the status
//
//	400  not what the protocol or the model takes      404  no such model, version or path
//	405  another method is expected                    408  the body did not arrive within Options.Timeout
//	413  the body, or the batch, is too large          415  another encoding of the body is expected
//	500  the model failed                              503  the queue is full, or the model not ready: later
//	504  it took longer than Options.Timeout
type Handler struct {
	options  Options
	late     error
	mux      *http.ServeMux
	draining atomic.Bool

	mu     sync.RWMutex
	models map[string]map[int]*version
}

const platform = "lazo"

// unwanted is the time for a body that no handler reads, of which net/http reads at most 256 KiB.
const unwanted = time.Second

// for the log alone
const statusGone = 499

// NewHandler returns a handler of models by name, each as version 1.
func NewHandler(models map[string]*Batcher, options Options) (*Handler, error) {
	if options.MaxBody < 0 || options.Timeout < 0 {
		return nil, fmt.Errorf("serve: MaxBody is %d and Timeout is %v, expected 0 (not given) or more", options.MaxBody, options.Timeout)
	}
	if options.MaxBody == 0 {
		options.MaxBody = 16 << 20
	}
	options.MaxBody = min(options.MaxBody, math.MaxInt64-1) // a reader takes one more
	if options.Timeout == 0 {
		options.Timeout = time.Minute
	}
	h := &Handler{options: options, late: fmt.Errorf("%w: the limit is %v", errTimeout, options.Timeout), mux: http.NewServeMux(), models: map[string]map[int]*version{}}
	for _, name := range slices.Sorted(maps.Keys(models)) {
		if _, err := h.Load(name, 1, models[name]); err != nil {
			return nil, err
		}
	}
	h.on("GET", "/v2", func(*call) (reply, error) {
		return inJSON(map[string]any{"name": platform, "version": "2", "extensions": []string{"binary_tensor_data", "model_configuration"}})
	})
	h.on("GET", "/v2/health/live", func(*call) (reply, error) { return inJSON(map[string]bool{"live": true}) })
	h.on("GET", "/v2/health/ready", h.ready)
	h.on("POST", "/v2/repository/index", h.index)
	for _, model := range []string{"/v2/models/{name}", "/v2/models/{name}/versions/{version}"} {
		h.on("GET", model, h.metadata)
		h.on("GET", model+"/config", h.config)
		h.on("GET", model+"/ready", h.modelReady)
		h.on("POST", model+"/infer", h.infer)
		h.on("POST", model+"/rows", h.rows)
	}
	return h, nil
}

type call struct {
	w     http.ResponseWriter
	r     *http.Request
	model *version
	body  string // of a POST to it, uncompressed
	told  Served
}

// reply is JSON, or, if json is not 0, that many bytes of JSON, then binary data.
type reply struct {
	text []byte
	json int
}

func inJSON(v any) (reply, error) {
	text, err := json.Marshal(v)
	return reply{text: text}, err
}

// route records its answers. The mux has others, of redirects and unknown paths.
type route http.HandlerFunc

func (f route) ServeHTTP(w http.ResponseWriter, r *http.Request) { f(w, r) }

func (h *Handler) on(method, path string, f func(*call) (reply, error)) {
	h.mux.Handle(path, h.route(method, f))
}

func (h *Handler) route(method string, f func(*call) (reply, error)) route {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{w: w, r: r, told: Served{Method: r.Method, Path: r.URL.Path}}
		begin := time.Now()
		var answer reply
		err := shield.Do(func() (err error) {
			if method != "" && r.Method != method {
				w.Header().Set("Allow", method)
				return failed(http.StatusMethodNotAllowed, "the method is %s, expected %s", listed.Quoted(r.Method), method)
			}
			if r.PathValue("name") != "" {
				v, done, err := h.use(r)
				if err != nil {
					return err
				}
				c.told.Model, c.told.Version = v.name, v.number
				if method == "POST" { // a body that comes slowly holds no model
					done()
					if c.body, err = h.body(w, r); err != nil {
						return err
					}
					if v, done, err = h.use(r); err != nil {
						return err
					}
				}
				defer done()
				c.model, c.told.Version, c.told.Received = v, v.number, len(c.body)
			}
			answer, err = f(c)
			return err
		})
		if err != nil {
			answer = h.refusal(c, err)
		}
		h.write(c, answer)
		c.told.Duration = time.Since(begin)
		h.tell(c)
	}
}

func missing(c *call) (reply, error) {
	return reply{}, failed(http.StatusNotFound, "there is no %s: expected /v2 or a path below it, see the Open Inference Protocol", listed.Quoted(c.r.URL.Path))
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	ctx, stop := context.WithTimeoutCause(r.Context(), h.options.Timeout, h.late)
	defer stop()
	r = r.WithContext(ctx)
	if r.Body != http.NoBody { // the server reads the rest before the answer; Handler.body takes longer
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(min(unwanted, h.options.Timeout))) // a test's writer has none
	}
	of, _ := h.mux.Handler(r)
	if _, known := of.(route); known && r.RequestURI != "*" {
		h.mux.ServeHTTP(w, r)
	} else {
		h.route("", missing)(w, r)
	}
}

// Drain makes the server report that it is not ready. It still answers requests; each response then closes its
// connection.
//
// http.Server.Shutdown loses a request that a client is just sending. Before it, wait until load balancers have seen
// the status and each client had a response.
func (h *Handler) Drain() { h.draining.Store(true) }

type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func failed(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

var errTimeout = errors.New("the request took too long")

// problemOf returns nil for an internal error: its text may be of the model, the device or other clients.
func problemOf(ctx context.Context, err error) *problem {
	known := (*problem)(nil)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, ErrInput):
		return &problem{http.StatusBadRequest, err.Error()}
	case errors.Is(err, ErrFull):
		return &problem{http.StatusServiceUnavailable, err.Error()}
	case errors.Is(err, ErrClosed):
		return &problem{http.StatusServiceUnavailable, "the model is closed"}
	case errors.Is(err, errTimeout):
		return &problem{http.StatusGatewayTimeout, err.Error()}
	case ctx.Err() == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return &problem{statusGone, "the client has gone"}
	case errors.Is(err, context.DeadlineExceeded):
		return &problem{http.StatusGatewayTimeout, errTimeout.Error()}
	case errors.Is(err, context.Cause(ctx)): // of the server's own context, like a signal
		return &problem{http.StatusServiceUnavailable, "the server ends"}
	}
	return nil
}

func (h *Handler) refusal(c *call, err error) reply {
	p := problemOf(c.r.Context(), err)
	if p == nil {
		p = &problem{http.StatusInternalServerError, "an internal error, and the server has no log (serve.Options.Log)"}
		if h.options.Log != nil {
			id := rand.Text()[:12]
			p.text = fmt.Sprintf("an internal error, in the server's log under the id %s", id)
			args := []any{"id", id, "model", c.told.Model, "version", c.told.Version, "error", err.Error()}
			if by := (*shield.Panic)(nil); errors.As(err, &by) {
				args = append(args, "stack", string(by.Stack))
			}
			h.options.Log.ErrorContext(c.r.Context(), "internal error", args...)
		}
	}
	c.told.Status = p.status
	answer, _ := inJSON(map[string]string{"error": p.text})
	return answer
}

func (h *Handler) write(c *call, answer reply) {
	header := c.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(answer.text)))
	if answer.json > 0 {
		header.Set("Content-Type", "application/octet-stream")
		header.Set(jsonSize, strconv.Itoa(answer.json))
	}
	switch c.told.Status {
	case 0:
		c.told.Status = http.StatusOK
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", "1")
	}
	// A client that reads no answer would hold it forever.
	connection := http.NewResponseController(c.w)
	if connection.SetWriteDeadline(time.Now().Add(h.options.Timeout)) == nil {
		defer func() { _ = connection.SetWriteDeadline(time.Time{}) }()
	}
	c.w.WriteHeader(c.told.Status)
	c.told.Sent, _ = c.w.Write(answer.text)
	_ = connection.Flush() // within the deadline; the client may have left
}

func brief(text string) string { return text[:min(len(text), 100)] }

func (h *Handler) tell(c *call) {
	if log, ctx := h.options.Log, c.r.Context(); log != nil && log.Enabled(ctx, slog.LevelInfo) {
		t := c.told
		log.LogAttrs(ctx, slog.LevelInfo, "request", slog.String("method", brief(t.Method)), slog.String("path", brief(t.Path)),
			slog.String("client", c.r.RemoteAddr), slog.String("model", t.Model), slog.Int("version", t.Version), slog.Int("status", t.Status),
			slog.Int("rows", t.Rows), slog.Int("received", t.Received), slog.Int("sent", t.Sent),
			slog.Duration("duration", t.Duration), slog.Duration("queued", t.Queued))
	}
	if h.options.Observe != nil {
		h.options.Observe(c.told)
	}
}
