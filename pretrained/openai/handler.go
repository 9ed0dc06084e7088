package openai

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/data/text/chat"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/serve"
)

// Model has a Generator, an Embedder, or both.
type Model struct {
	Tokenizer *text.Tokenizer
	// Generator makes completions. Nothing else uses it concurrently.
	Generator *pretrained.Generator
	// Generation has what a request omits, like the tokens that end a text: [pretrained.Base.Generation].
	Generation pretrained.Generation
	// Embedder is a flaxlike.Model of [pretrained.Base.Embedder], for example.
	Embedder serve.Predictor
	// Longest bounds the tokens of an embedded text; the Tokenizer's MaxLength if 0.
	Longest int
}

// Options are a [Handler]'s limits, key and log. Negative values are errors.
type Options struct {
	Key     string        // of "Authorization: Bearer KEY"; none if empty
	Queue   int           // the most requests that wait for a model; 16 if 0
	MaxBody int64         // of a request's body in bytes; 1 MiB if 0
	Timeout time.Duration // of a request with its queue and answer; 5 minutes if 0
	Log     *slog.Logger  // of internal errors, of which a client gets only an id
}

// Handler serves models.
type Handler struct {
	options Options
	key     [sha256.Size]byte
	late    error
	models  map[string]*served
}

type served struct {
	Model
	name     string
	template *chat.Template
	noChat   error
	queue    chan struct{} // with those at work
	turn     chan struct{}
}

const mostQueue = 1 << 20

// NewHandler returns a handler of models by name.
func NewHandler(models map[string]Model, options Options) (*Handler, error) {
	if options.Queue < 0 || options.MaxBody < 0 || options.Timeout < 0 {
		return nil, fmt.Errorf("openai: Queue is %d, MaxBody %d and Timeout %v, expected 0 (not given) or more", options.Queue, options.MaxBody, options.Timeout)
	}
	if options.Queue > mostQueue {
		return nil, fmt.Errorf("openai: Queue is %d, expected at most %d", options.Queue, mostQueue)
	}
	if options.Queue == 0 {
		options.Queue = 16
	}
	if options.MaxBody == 0 {
		options.MaxBody = 1 << 20
	}
	if options.Timeout == 0 {
		options.Timeout = 5 * time.Minute
	}
	h := &Handler{options: options, key: sha256.Sum256([]byte(options.Key)), models: map[string]*served{},
		late: &problem{status: http.StatusGatewayTimeout, kind: serverError, code: "timeout", text: fmt.Sprintf("the request took longer than %v", options.Timeout)}}
	for name, m := range models {
		s := &served{Model: m, name: name, queue: make(chan struct{}, options.Queue+1), turn: make(chan struct{}, 1)}
		switch {
		case m.Tokenizer == nil || m.Generator == nil && m.Embedder == nil:
			return nil, fmt.Errorf("openai: the model %q has no Tokenizer, or neither a Generator nor an Embedder", name)
		case m.Generation.Beams.Count > 1:
			return nil, fmt.Errorf("openai: the model %q has a Generation with Beams, whose text is known at its end: expected none", name)
		}
		if s.Longest == 0 {
			s.Longest = m.Tokenizer.MaxLength()
		}
		if m.Embedder != nil && s.Longest < 1 {
			return nil, fmt.Errorf("openai: Longest of the model %q is %d, expected 1 or more: its tokenizer does not say how many tokens it takes", name, s.Longest)
		}
		s.Generation.Tokenizer = m.Tokenizer
		s.template, s.noChat = chat.New(m.Tokenizer)
		h.models[name] = s
	}
	return h, nil
}

const (
	badRequest  = "invalid_request_error"
	serverError = "server_error"
)

type problem struct {
	status            int
	kind, param, code string
	text              string
}

func (p *problem) Error() string { return p.text }

// wrong is of all if param is empty.
func wrong(param, format string, values ...any) error {
	return &problem{status: http.StatusBadRequest, kind: badRequest, param: param, text: fmt.Sprintf(format, values...)}
}

type call struct {
	*Handler
	w     http.ResponseWriter
	r     *http.Request
	begun bool // the status is sent
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithTimeoutCause(r.Context(), h.options.Timeout, h.late)
	defer stop()
	if r.Body != http.NoBody { // also of what is refused, which the server reads
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.options.Timeout)) // a test's writer has none
	}
	c := &call{Handler: h, w: w, r: r.WithContext(ctx)}
	if err := shield.Do(c.serve); err != nil {
		c.refuse(err)
	}
}

func (c *call) serve() error {
	if c.options.Key != "" {
		key, ok := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
		given := sha256.Sum256([]byte(key))
		if subtle.ConstantTimeCompare(given[:], c.key[:]) != 1 || !ok {
			return &problem{status: http.StatusUnauthorized, kind: badRequest, code: "invalid_api_key", text: "the key is not valid: expected the header Authorization: Bearer KEY"}
		}
	}
	method := http.MethodPost
	var serve func() error
	switch path := c.r.URL.Path; {
	case path == "/v1/chat/completions":
		serve = func() error { return c.complete(true) }
	case path == "/v1/completions":
		serve = func() error { return c.complete(false) }
	case path == "/v1/embeddings":
		serve = c.embed
	case path == "/v1/models":
		method, serve = http.MethodGet, c.list
	case strings.HasPrefix(path, "/v1/models/"):
		method, serve = http.MethodGet, func() error { return c.describe(strings.TrimPrefix(path, "/v1/models/")) }
	default:
		return &problem{status: http.StatusNotFound, kind: badRequest, code: "unknown_url", text: fmt.Sprintf("there is no %s: expected /v1/chat/completions, /v1/completions, /v1/embeddings or /v1/models", listed.Quoted(path))}
	}
	if c.r.Method != method {
		c.w.Header().Set("Allow", method)
		return &problem{status: http.StatusMethodNotAllowed, kind: badRequest, text: fmt.Sprintf("the method is %s, expected %s", listed.Quoted(c.r.Method), method)}
	}
	return serve()
}

type described struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int    `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (c *call) list() error {
	all := []described{}
	for _, name := range slices.Sorted(maps.Keys(c.models)) {
		all = append(all, described{name, "model", 0, "lazo"})
	}
	return c.answer(map[string]any{"object": "list", "data": all})
}

func (c *call) describe(name string) error {
	if _, err := c.model(name); err != nil {
		return err
	}
	return c.answer(described{name, "model", 0, "lazo"})
}

func (h *Handler) model(name string) (*served, error) {
	m, there := h.models[name]
	if !there {
		return nil, &problem{status: http.StatusNotFound, kind: badRequest, param: "model", code: "model_not_found",
			text: fmt.Sprintf("there is no model %s: expected one of %s", listed.Quoted(name), listed.Some(slices.Sorted(maps.Keys(h.models))))}
	}
	return m, nil
}

func (m *served) enter(ctx context.Context) (leave func(), err error) {
	select {
	case m.queue <- struct{}{}:
	default:
		return nil, &problem{status: http.StatusServiceUnavailable, kind: serverError, code: "overloaded", text: fmt.Sprintf("the queue is full, %d requests wait: ask again later", cap(m.queue)-1)}
	}
	select {
	case m.turn <- struct{}{}:
		return sync.OnceFunc(func() { <-m.turn; <-m.queue }), nil
	case <-ctx.Done():
		<-m.queue
		return nil, context.Cause(ctx)
	}
}

func (c *call) ended(err error) error {
	return errors.Join(context.Cause(c.r.Context()), err)
}

func (c *call) body() (string, error) {
	content, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.options.MaxBody))
	large := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &large):
		return "", &problem{status: http.StatusRequestEntityTooLarge, kind: badRequest, text: fmt.Sprintf("the body has more than %d bytes", c.options.MaxBody)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", &problem{status: http.StatusRequestTimeout, kind: badRequest, text: fmt.Sprintf("the body was not sent within %v", c.options.Timeout)}
	case err != nil:
		return "", wrong("", "the body: %v", err)
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) // the wait for the client's end has none
	return string(content), nil
}

// send writes within the request's time: a client that reads nothing would hold the model. An error may come after.
func (c *call) send(content []byte) error {
	connection, end := http.NewResponseController(c.w), time.Now().Add(time.Second)
	if late, ok := c.r.Context().Deadline(); ok && late.After(end) {
		end = late
	}
	if connection.SetWriteDeadline(end) == nil {
		defer func() { _ = connection.SetWriteDeadline(time.Time{}) }()
	}
	_, err := c.w.Write(content)
	return errors.Join(err, connection.Flush())
}

func (c *call) answer(v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.begun = true
	_ = c.send(content) // the client may have left
	return nil
}

var errGone = errors.New("the client has gone")

func (c *call) event(v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.raw(string(content))
}

func (c *call) raw(content string) error {
	if !c.begun {
		c.begun = true
		c.w.Header().Set("Content-Type", "text/event-stream")
		c.w.Header().Set("Cache-Control", "no-cache")
	}
	if err := c.send([]byte("data: " + content + "\n\n")); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// refuse may end a stream with the error.
func (c *call) refuse(err error) {
	p, ctx := (*problem)(nil), c.r.Context()
	switch {
	case errors.Is(err, errGone) || errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return
	case errors.As(err, &p):
	default:
		p = &problem{status: http.StatusInternalServerError, kind: serverError, text: "an internal error, and the server has no log (openai.Options.Log)"}
		if c.options.Log != nil {
			id := rand.Text()[:12]
			p.text = fmt.Sprintf("an internal error, in the server's log under the id %s", id)
			args := []any{"id", id, "path", c.r.URL.Path, "error", err.Error()}
			if by := (*shield.Panic)(nil); errors.As(err, &by) {
				args = append(args, "stack", string(by.Stack))
			}
			c.options.Log.ErrorContext(ctx, "internal error", args...)
		}
	}
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	v := map[string]any{"error": map[string]any{"message": p.text, "type": p.kind, "param": null(p.param), "code": null(p.code)}}
	if c.begun {
		_ = c.event(v)
		return
	}
	content, err := json.Marshal(v)
	if err != nil {
		return
	}
	c.w.Header().Set("Content-Type", "application/json")
	if p.status == http.StatusServiceUnavailable {
		c.w.Header().Set("Retry-After", "1")
	}
	c.w.WriteHeader(p.status)
	_ = c.send(content)
}
