package board

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

type Access struct {
	// Token is needed for changes, in the header Authorization: Bearer.
	Token   string
	Reading bool
	// Hosts are other names of the server. IP addresses and localhost need none.
	Hosts []string
}

func NewToken() string {
	var b [18]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

//go:embed page
var page embed.FS

var files = map[string]string{
	"/": "index.html", "/board.js": "board.js", "/board.css": "board.css", "/uPlot.iife.min.js": "uPlot.iife.min.js", "/uPlot.min.css": "uPlot.min.css",
	"/uPlot.LICENSE": "uPlot.LICENSE",
}

// Handler serves the page, and:
//
//	GET  events     server-sent events: the state of the runs and their log lines
//	GET  series     the values of curves, reduced to the width of the screen
//	GET  samples    the samples of a run
//	POST control    an action in a training
//
// A request whose Host is a name of another server, as after DNS rebinding, or whose Origin is another page, is
// refused.
func (s *Store) Handler(a Access) http.Handler {
	h := &handler{store: s, access: a, boot: NewToken()}
	mux := http.NewServeMux()
	for path, file := range files {
		mux.HandleFunc("GET "+path+map[bool]string{true: "{$}"}[path == "/"], func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-cache")
			http.ServeFileFS(w, r, page, "page/"+file)
		})
	}
	mux.HandleFunc("GET /events", h.reading(h.events))
	mux.HandleFunc("GET /series", h.reading(h.series))
	mux.HandleFunc("GET /samples", h.reading(h.samples))
	mux.HandleFunc("POST /control", h.changing(h.control))
	return h.guarded(mux)
}

type handler struct {
	store  *Store
	access Access
	boot   string
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (h *handler) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		if !h.isHost(r.Host) {
			http.Error(w, fmt.Sprintf("board: the host is %q, expected an IP address, localhost, or one of the board's Hosts", r.Host), http.StatusForbidden)
			return
		}
		origin := r.Header.Get("Origin")
		_, from, _ := strings.Cut(origin, "://")
		if origin != "" && from != r.Host || slices.Contains([]string{"cross-site", "same-site"}, r.Header.Get("Sec-Fetch-Site")) && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			http.Error(w, fmt.Sprintf("board: the request is of another page (%s): open the board's own page", origin), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isHost: a name could be another server's, with this machine's address.
func (h *handler) isHost(host string) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return strings.EqualFold(name, "localhost") || slices.ContainsFunc(h.access.Hosts, func(own string) bool { return strings.EqualFold(own, name) })
}

func (h *handler) reading(do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if h.access.Reading && !h.knows(w, r) {
			return
		}
		do(w, r)
	}
}

func (h *handler) changing(do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h.knows(w, r) {
			do(w, r)
		}
	}
}

func (h *handler) knows(w http.ResponseWriter, r *http.Request) bool {
	given, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(h.access.Token))
	if equal := subtle.ConstantTimeCompare(a[:], b[:]) == 1; equal && is && h.access.Token != "" {
		return true
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "board: the token is missing or wrong: open the address with the token that the program printed", http.StatusUnauthorized)
	return false
}

type seriesRequest struct {
	X        string     `json:"x"`
	Width    int        `json:"width"`
	From, To *float64   // nil: all
	Series   []wantedOf `json:"series"`
}

type wantedOf struct {
	Run     int      `json:"run"`
	Name    string   `json:"name"`
	Bucket  *float64 `json:"bucket"`
	Rewound int      `json:"rewound"`
	Since   float64  `json:"since"`
}

const widest, mostWanted = 4096, 1024

func (h *handler) series(w http.ResponseWriter, r *http.Request) {
	var q seriesRequest
	if err := json.Unmarshal([]byte(r.URL.Query().Get("q")), &q); err != nil {
		http.Error(w, "board: series: the parameter q is not a request: "+err.Error(), http.StatusBadRequest)
		return
	}
	x, known := map[string]axis{"step": bySteps, "time": bySeconds}[q.X]
	if !known || q.Width < 1 || q.Width > widest || len(q.Series) > mostWanted {
		http.Error(w, fmt.Sprintf("board: series: expected x step or time, a width from 1 to %d and at most %d series, got %q, %d and %d", widest, mostWanted, q.X, q.Width, len(q.Series)), http.StatusBadRequest)
		return
	}
	from, to := math.Inf(-1), math.Inf(1)
	if q.From != nil {
		from = *q.From
	}
	if q.To != nil {
		to = *q.To
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(h.store.columns(q, x, from, to)) // the page may have left
}

// columns copies the points first: the store is then free for the training.
func (s *Store) columns(q seriesRequest, x axis, from, to float64) []byte {
	all, rewound := make([][]point, len(q.Series)), make([]int, len(q.Series))
	byName := map[string][][]point{}
	s.mu.Lock()
	for i, want := range q.Series {
		if r := s.run(want.Run); r != nil && r.series[want.Name] != nil {
			of := r.series[want.Name]
			all[i], rewound[i] = of.between(x, from, to), of.rewound
			byName[want.Name] = append(byName[want.Name], all[i])
		}
	}
	buckets := map[string]float64{}
	for name, ranges := range byName {
		buckets[name] = bucketOf(x, q.Width, ranges...)
	}
	for i, want := range q.Series {
		if b := buckets[want.Name]; want.Bucket != nil && *want.Bucket == b && want.Rewound == rewound[i] {
			since := want.Since
			if b > 0 {
				since = math.Floor(since/b) * b
			}
			all[i] = (&series{points: all[i]}).between(x, since, math.Inf(1))
		} else {
			q.Series[i].Bucket = nil
		}
		all[i] = slices.Clone(all[i])
	}
	s.mu.Unlock()
	b := []byte(`[`)
	for i, want := range q.Series {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"bucket":%g,"rewound":%d,"more":%t`, buckets[want.Name], rewound[i], want.Bucket != nil)
		b = append(reduce(all[i], x, buckets[want.Name]).appendJSON(b), '}')
	}
	return append(b, ']', '\n')
}

func (h *handler) samples(w http.ResponseWriter, r *http.Request) {
	var id int
	if _, err := fmt.Sscan(r.URL.Query().Get("run"), &id); err != nil {
		http.Error(w, "board: samples: the parameter run is not a number", http.StatusBadRequest)
		return
	}
	h.store.mu.Lock()
	var all []Sample
	if of := h.store.run(id); of != nil {
		all = slices.Clone(of.samples)
	}
	h.store.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(append([]Sample{}, all...))
}

type controlRequest struct {
	Run    int     `json:"run"`
	Action string  `json:"action"`
	Value  float64 `json:"value"`
}

func (h *handler) control(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "board: control: expected a body of application/json", http.StatusUnsupportedMediaType)
		return
	}
	var c controlRequest
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		http.Error(w, "board: control: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := h.store.do(c); err != nil {
		http.Error(w, "board: control: "+err.Error(), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Store) do(c controlRequest) error {
	s.mu.Lock()
	r := s.run(c.Run)
	var info Info
	if r != nil {
		info = r.info
	}
	s.mu.Unlock()
	switch {
	case r == nil:
		return fmt.Errorf("there is no run %d", c.Run)
	case info.Control == nil:
		return errors.New("the run is not in progress in the board's own process: changes need the callback of callbacks/board")
	case !slices.Contains(info.Actions, c.Action):
		return fmt.Errorf("the action is %q, expected one of %s", c.Action, strings.Join(info.Actions, ", "))
	}
	return info.Control(c.Action, c.Value)
}

// Listen serves a handler at HOST:PORT until the server is closed. Without a host it is 127.0.0.1. open: other
// machines can connect.
func Listen(address string) (listener net.Listener, open bool, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, false, fmt.Errorf("the address is %q, expected HOST:PORT", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if listener, err = net.Listen("tcp", net.JoinHostPort(host, port)); err != nil {
		return nil, false, err
	}
	tcp, is := listener.Addr().(*net.TCPAddr)
	return listener, !is || !tcp.IP.IsLoopback(), nil
}

// NewServer returns a server without a limit of writes: a page may be open for long.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute}
}
