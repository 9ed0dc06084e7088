package dist

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

type kind string

const (
	kindHello   kind = "hello"
	kindRefused kind = "refused" // with the reason
	kindWelcome kind = "welcome" // all have joined
	kindBeat    kind = "beat"
	kindCall    kind = "call"
	kindResult  kind = "result"
	kindStack   kind = "stack"
	kindFail    kind = "fail"
	kindEnd     kind = "end"
	kindBye     kind = "bye" // the sender leaves normally
	kindPut     kind = "put"
	kindGet     kind = "get"
	kindTry     kind = "try"    // does not wait
	kindForget  kind = "forget" // ends a get
	kindValue   kind = "value"  // a value, or put succeeded
	kindTaken   kind = "taken"
	kindNone    kind = "none"
	kindLeave   kind = "leave" // a program ends with an error; its counts
)

var kinds = []kind{
	kindHello, kindRefused, kindWelcome, kindBeat, kindCall, kindResult, kindStack, kindFail, kindEnd, kindBye, kindPut, kindGet, kindTry, kindForget,
	kindValue, kindTaken, kindNone, kindLeave,
}

// message is sent as its length in four bytes, and JSON.
type message struct {
	Kind    kind
	Hello   *hello   `json:",omitempty"`
	Welcome *welcome `json:",omitempty"`
	Beat    *beat    `json:",omitempty"`
	Failure *Failure `json:",omitempty"`
	Call    string   `json:",omitempty"` // compared: "Agree of 3 words"
	Shown   string   `json:",omitempty"` // in messages
	Words   []int64  `json:",omitempty"`
	Data    []byte   `json:",omitempty"`
	Parts   [][]byte `json:",omitempty"`
	Text    string   `json:",omitempty"`
	// ID is the rank's request to the store.
	ID  int64  `json:",omitempty"`
	Key []byte `json:",omitempty"`
}

type hello struct {
	Job, Attempt         string
	Rank, Size           int
	Host                 string
	PID                  int
	LocalRank, LocalSize int // -1: unknown
	Program              []string
}

type welcome struct {
	Deadline time.Duration
	Peers    []peer
}

type peer struct {
	Host                 string
	PID                  int
	LocalRank, LocalSize int
}

const (
	mostHello   = 1 << 20 // bytes; a module with about 100 dependencies fits
	mostMessage = 1 << 30
)

// messageError is a fault of a message, not of its connection.
type messageError struct {
	code int
	way  string
	what string
}

func (e *messageError) Error() string { return "a message " + e.what }

func (e *messageError) text(rank string) string {
	return fmt.Sprintf("a message %s %s %s", e.way, rank, e.what)
}

func unreadable(expected string, got any) error {
	return &messageError{ExitLost, "from", fmt.Sprintf("could not be read: expected %s, got %v: the network or a host changed it", expected, got)}
}

func frame(m message, most int) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(body) > most {
		return nil, &messageError{ExitFailed, "to", fmt.Sprintf("(%q) could not be sent: expected at most %d bytes, got %d: join the ranks by MPI, or pass less data", cmp.Or(m.Call, string(m.Kind)), most, len(body))}
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, len(body)+4), uint32(len(body))), body...), nil
}

func put(c net.Conn, frame []byte, limit time.Duration) error {
	if err := c.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	_, err := c.Write(frame)
	return err
}

func write(c net.Conn, m message, limit time.Duration) error {
	f, err := frame(m, mostMessage)
	if err != nil {
		return err
	}
	return put(c, f, limit)
}

func read(c io.Reader, most int) (m message, err error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return m, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if int64(n) > int64(most) {
		return m, unreadable(fmt.Sprintf("at most %d bytes", most), n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(c, body); err != nil {
		return m, err
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return m, unreadable("JSON", fmt.Sprintf("%.40q (%v)", body, err))
	}
	if !slices.Contains(kinds, m.Kind) {
		return m, unreadable("a kind of message", fmt.Sprintf("%.40q", m.Kind))
	}
	return m, nil
}
