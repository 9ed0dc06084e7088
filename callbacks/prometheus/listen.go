package prometheus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const defaultPort = "9464"

// Handler serves the metrics and the process's state:
//
//	/metrics            for Prometheus
//	/health             200 and the runs as JSON; with ?idle=5m 503 if a run in progress began no activity for so long
//	/debug/pprof/       profiles, as of package net/http/pprof
//
// Profiles show the program's arguments and code.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/health", m.health)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func (m *Metrics) health(w http.ResponseWriter, r *http.Request) {
	runs := m.runs.health(time.Now())
	text := r.URL.Query().Get("idle")
	limit, err := time.ParseDuration(cmp.Or(text, "0s"))
	if err != nil || limit < 0 {
		http.Error(w, "idle: expected a duration such as 5m", http.StatusBadRequest)
		return
	}
	status := http.StatusOK
	for _, run := range runs {
		if text != "" && run.Running && run.Idle > limit.Seconds() {
			status = http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"runs": append([]health{}, runs...)}) // the client may have left
}

type Server struct {
	server  http.Server
	address net.Addr
	done    chan struct{}
}

// Listen serves [Metrics.Handler] at an address HOST:PORT until Close. Without a host it is 127.0.0.1; 0.0.0.0 offers
// metrics and profiles to a network. "" is 127.0.0.1:9464.
func (m *Metrics) Listen(address string) (*Server, error) {
	host, port, err := net.SplitHostPort(cmp.Or(address, ":"+defaultPort))
	if err != nil {
		return nil, fmt.Errorf("prometheus: listen: the address is %q: expected HOST:PORT", address)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	s := &Server{address: listener.Addr(), done: make(chan struct{})}
	s.server = http.Server{Handler: m.Handler(), ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute} // pprof writes for long
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // until Close
	}()
	return s, nil
}

func (s *Server) Addr() net.Addr { return s.address }

func (s *Server) Close() error {
	err := s.server.Close()
	<-s.done
	if err != nil {
		return fmt.Errorf("prometheus: %w", err)
	}
	return nil
}
