package dist

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

// kind of a message on a control connection.
type kind string

const (
	kindHello   kind = "hello"   // a rank comes: who it is
	kindRefused kind = "refused" // it is not one of the job: why
	kindWelcome kind = "welcome" // all have come
	kindBeat    kind = "beat"    // what a rank is doing
	kindCall    kind = "call"    // a rank's part in an agreement
	kindResult  kind = "result"  // and what came of it
	kindStack   kind = "stack"   // rank 0 asks for a stack, the rank answers
	kindFail    kind = "fail"    // a rank cannot go on
	kindEnd     kind = "end"     // the job ends, by a failure
	kindBye     kind = "bye"     // the sender leaves, in order
	kindPut     kind = "put"     // of the store: a key and its value
	kindGet     kind = "get"     // a rank waits for the value of a key
	kindTry     kind = "try"     // or does not wait
	kindForget  kind = "forget"  // it waits no longer
	kindValue   kind = "value"   // rank 0 answers: the value, or that it was put
	kindTaken   kind = "taken"   // the key had a value
	kindNone    kind = "none"    // it has none
	kindLeave   kind = "leave"   // a rank's program ends by an error: which, and what the rank has begun
)

// message is what goes over a control connection: its length in four bytes, and JSON.
type message struct {
	Kind    kind
	Hello   *hello   `json:",omitempty"`
	Welcome *welcome `json:",omitempty"`
	Beat    *beat    `json:",omitempty"`
	Failure *Failure `json:",omitempty"`
	Call    string   `json:",omitempty"` // the call as [Job] names it, "Agree of 3 words"
	Shown   string   `json:",omitempty"` // and as messages name it
	Words   []int64  `json:",omitempty"`
	Data    []byte   `json:",omitempty"`
	Parts   [][]byte `json:",omitempty"`
	Text    string   `json:",omitempty"`
	// Of the store: the number of the request, by its rank, and the key, which need not be text. Data is the value.
	ID  int64  `json:",omitempty"`
	Key []byte `json:",omitempty"`
}

// hello is how a rank comes to rank 0.
type hello struct {
	Protocol             int
	Job, Attempt, Secret string
	Rank, Size           int
	Host                 string
	PID                  int
	LocalRank, LocalSize int // -1: not known
	Program              []string
}

// protocol is raised when messages change: processes of two versions of lazo are no job.
const protocol = 2

// welcome is rank 0's answer, when all have come.
type welcome struct {
	Deadline time.Duration
	Peers    []peer // by rank
}

// peer is who a rank is.
type peer struct {
	Host                 string
	PID                  int
	LocalRank, LocalSize int
}

const (
	mostHello   = 1 << 16 // bytes of a message of somebody who is not known yet
	mostMessage = 1 << 30
)

// frame is a message as it goes over a connection.
func frame(m message) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(body) > mostMessage {
		return nil, fmt.Errorf("a message of %d bytes, the limit is %d", len(body), mostMessage)
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
	f, err := frame(m)
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
		return m, fmt.Errorf("a message of %d bytes, the limit is %d", n, most)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(c, body); err != nil {
		return m, err
	}
	return m, json.Unmarshal(body, &m)
}
