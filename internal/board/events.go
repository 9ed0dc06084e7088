package board

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// gather is the time between two events of a page.
	gather   = 500 * time.Millisecond
	alive    = 15 * time.Second
	patience = 20 * time.Second
)

// events sends the state of the changed runs, at most twice a second.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // not all writers have deadlines
	p := pager{boot: h.boot, lines: map[int]int{}}
	heartbeat := time.NewTimer(alive)
	defer heartbeat.Stop()
	for ending := false; ; {
		b, changed := p.next(h.store)
		_ = out.SetWriteDeadline(time.Now().Add(patience))
		if _, err := w.Write(b); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		if ending {
			return
		}
		heartbeat.Reset(alive)
		select {
		case <-changed:
			pause := time.NewTimer(gather)
			select {
			case <-pause.C:
			case <-h.store.over:
				pause.Stop()
				ending = true
			case <-r.Context().Done():
				pause.Stop()
				return
			}
		case <-h.store.over:
			ending = true
		case <-heartbeat.C:
		case <-r.Context().Done():
			return
		}
	}
}

// pager has the part of the store that a page has had.
type pager struct {
	boot    string
	version int64
	lines   map[int]int
	begun   bool
}

type linesEvent struct {
	Run   int        `json:"run"`
	Lines []lineText `json:"lines"`
}

type lineText struct {
	At   float64 `json:"at"`
	Text string  `json:"text"`
}

type runsEvent struct {
	Boot string  `json:"boot"`
	Runs []state `json:"runs"`
	Gone []int   `json:"gone"`
	// Now is the server's clock, for ages.
	Now float64 `json:"now"`
}

func (p *pager) next(s *Store) (b []byte, changed <-chan struct{}) {
	e := runsEvent{Boot: p.boot, Runs: []state{}, Gone: []int{}, Now: float64(time.Now().UnixMilli()) / 1000}
	var lines []linesEvent
	s.mu.Lock()
	for _, r := range s.runs {
		if r.version <= p.version {
			continue
		}
		e.Runs = append(e.Runs, r.state())
		have := max(p.lines[r.id], r.cut)
		if total := r.cut + len(r.lines); total > have {
			l := linesEvent{Run: r.id}
			for _, of := range r.lines[have-r.cut:] {
				l.Lines = append(l.Lines, lineText{float64(of.at.UnixMilli()) / 1000, of.text})
			}
			lines, p.lines[r.id] = append(lines, l), total
		}
	}
	for _, g := range s.gone {
		if g.version > p.version {
			e.Gone = append(e.Gone, g.id)
		}
	}
	p.version, changed, s.awaited = s.version, s.changed, true
	s.mu.Unlock()
	if !p.begun || len(e.Runs)+len(e.Gone) > 0 {
		p.begun = true
		b = appendEvent(b, "runs", e)
	} else {
		b = append(b, ": alive\n\n"...)
	}
	for _, l := range lines {
		b = appendEvent(b, "lines", l)
	}
	return b, changed
}

func appendEvent(b []byte, name string, content any) []byte {
	text, err := json.Marshal(content)
	if err != nil { // of a non-finite number, which state excludes
		text = fmt.Appendf(nil, `{"error":%q}`, err)
		name = "problem"
	}
	return fmt.Appendf(b, "event: %s\ndata: %s\n\n", name, text)
}
