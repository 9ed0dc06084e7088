package dist

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Before a message, both sides of a connection prove the job's secret. Each sends an opening, of random bytes, then an
// HMAC of both openings: the rank first, so a stranger gets none.
const (
	// protocol increases with each change of the openings, the proofs or the messages.
	protocol = 3

	mark         = "lazo"
	sizeOpening  = len(mark) + 1 + 32
	sizeProof    = sha256.Size
	provesWithin = 5 * time.Second
)

var errProof = errors.New("its proof of the job's secret is wrong")

func newOpening() []byte {
	b := make([]byte, sizeOpening)
	b[copy(b, mark)] = protocol
	_, _ = rand.Read(b[len(mark)+1:]) // never fails
	return b
}

func readOpening(c net.Conn) ([]byte, error) {
	b := make([]byte, sizeOpening)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, fmt.Errorf("it sends no opening of lazo's control connections: %w", err)
	}
	if string(b[:len(mark)]) != mark {
		return nil, errors.New("it does not speak the protocol of lazo's control connections")
	}
	return b, nil
}

// sameProtocol is separate: both sides answer before they compare.
func sameProtocol(opening []byte) error {
	if other := opening[len(mark)]; other != protocol {
		return fmt.Errorf("it speaks protocol %d of lazo's control connections, this process speaks %d: build all ranks from one version", other, protocol)
	}
	return nil
}

// proof differs between the sides: neither can send the other's back.
func proof(secret, side string, ofRank, ofZero []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(side))
	h.Write(ofRank)
	h.Write(ofZero)
	return h.Sum(nil)
}

const (
	sideRank = "rank"
	sideZero = "zero"
)

func readProof(c net.Conn, expected []byte) error {
	got := make([]byte, sizeProof)
	if _, err := io.ReadFull(c, got); err != nil {
		return fmt.Errorf("it sends no proof of the job's secret: %w", err)
	}
	if !hmac.Equal(got, expected) {
		return errProof
	}
	return nil
}

func prove(c net.Conn, secret string) error {
	if err := c.SetDeadline(time.Now().Add(provesWithin)); err != nil {
		return err
	}
	own := newOpening()
	if _, err := c.Write(own); err != nil {
		return err
	}
	zero, err := readOpening(c)
	if err != nil {
		return err
	}
	if err := sameProtocol(zero); err != nil {
		return err
	}
	if _, err := c.Write(proof(secret, sideRank, own, zero)); err != nil {
		return err
	}
	if err := readProof(c, proof(secret, sideZero, own, zero)); err != nil {
		return fmt.Errorf("%w (has it another $%s?)", err, variableSecret)
	}
	return c.SetDeadline(time.Time{})
}

// checkProof is rank 0's side. The peer has provesWithin in all. After proved it takes the connection's end for rank
// 0's.
func checkProof(c net.Conn, secret string, proved func()) error {
	if err := c.SetDeadline(time.Now().Add(provesWithin)); err != nil {
		return err
	}
	rank, err := readOpening(c)
	if err != nil {
		return err
	}
	own := newOpening()
	if _, err := c.Write(own); err != nil {
		return err
	}
	if err := sameProtocol(rank); err != nil {
		return err
	}
	if err := readProof(c, proof(secret, sideRank, rank, own)); err != nil {
		return err
	}
	proved()
	if _, err := c.Write(proof(secret, sideZero, rank, own)); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}
