package dist

import (
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// S40: rank 0 proves itself too. A stranger at its address that knows no secret, or sends back the rank's own words,
// receives no hello.
func TestS40_rank0ProvesItself(t *testing.T) {
	for name, words := range map[string]func(opening, proof []byte) (ownOpening, ownProof []byte){
		"another secret":   func(o, p []byte) ([]byte, []byte) { n := newOpening(); return n, proof("another", sideZero, o, n) },
		"the rank's words": func(o, p []byte) ([]byte, []byte) { return o, p },
	} {
		t.Run(name, func(t *testing.T) {
			rank, stranger := net.Pipe()
			defer stranger.Close()
			received := make(chan []byte, 1)
			go func() {
				opening, proof := make([]byte, sizeOpening), make([]byte, sizeProof)
				_, _ = io.ReadFull(stranger, opening)
				first, _ := words(opening, nil)
				_, _ = stranger.Write(first)
				_, _ = io.ReadFull(stranger, proof)
				_, second := words(opening, proof)
				_, _ = stranger.Write(second)
				rest, _ := io.ReadAll(stranger)
				received <- rest
			}()
			err := prove(rank, secret)
			rank.Close()
			require.ErrorIs(t, err, errProof)
			require.ErrorContains(t, err, "$LAZO_SECRET")
			require.Empty(t, <-received)
		})
	}
}

// S40: builds with different protocols name both, and exchange no more than their openings.
func TestS40_anotherProtocol(t *testing.T) {
	for name, side := range map[string]func(net.Conn, string) error{"rank": prove, "rank 0": func(c net.Conn, secret string) error { return checkProof(c, secret, nil) }} {
		t.Run(name, func(t *testing.T) {
			own, other := net.Pipe()
			defer other.Close()
			opening := newOpening()
			opening[len(mark)]++
			received := make(chan []byte, 1)
			go func() {
				half := make([]byte, sizeOpening)
				if name == "rank" {
					_, _ = io.ReadFull(other, half)
				}
				_, _ = other.Write(opening)
				rest, _ := io.ReadAll(other)
				if name == "rank" {
					rest = append(half, rest...)
				}
				received <- rest
			}()
			err := side(own, secret)
			own.Close()
			require.ErrorContains(t, err, "it speaks protocol 4 of lazo's control connections, this process speaks 3: build all ranks from one version")
			require.Len(t, <-received, sizeOpening)
		})
	}
}

// S40, S56: a peer has five seconds in all to prove the secret, however it divides its bytes. So has one at rank 0's
// address.
func TestS40_aSlowStranger(t *testing.T) {
	for name, side := range map[string]func(net.Conn, string) error{"rank": prove, "rank 0": func(c net.Conn, secret string) error { return checkProof(c, secret, nil) }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				own, stranger := net.Pipe()
				var calls sync.WaitGroup
				calls.Go(func() { _, _ = io.Copy(io.Discard, stranger) })
				calls.Go(func() {
					defer stranger.Close()
					opening := newOpening()
					for i := range opening {
						if _, err := stranger.Write(opening[i : i+1]); err != nil {
							return
						}
						time.Sleep(second)
					}
				})
				begin := time.Now()
				require.Error(t, side(own, secret))
				require.Equal(t, provesWithin, time.Since(begin)) // of the bubble's clock
				own.Close()
				calls.Wait()
			})
		})
	}
}

// S40: a rank is not counted as a stranger when rank 0 proves itself: the end of its connection would then end it.
func TestS40_provedBeforeRank0Proves(t *testing.T) {
	zero, rank := net.Pipe()
	defer zero.Close()
	ended := make(chan error, 1)
	go func() { ended <- prove(rank, secret) }()
	err := checkProof(zero, secret, func() { zero.Close() }) // as of the oldest of too many
	require.Error(t, err)
	require.ErrorContains(t, <-ended, "it sends no proof of the job's secret", "so it tries again")
}
