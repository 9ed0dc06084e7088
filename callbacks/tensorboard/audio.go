package tensorboard

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
)

// Audio is sound, logged with [loop.Logs.Output] and written as WAV with 16 bits per sample.
type Audio struct {
	// Samples are from -1 to 1, interleaved. Other values are clipped; NaN is silence.
	Samples []float32
	// Rate is the number of samples per second and channel, at least 1.
	Rate int
	// Channels is at most 255, 1 if 0.
	Channels int
}

// String omits the samples.
func (a Audio) String() string {
	return fmt.Sprintf("audio of %d samples, %d channels, %d Hz", len(a.Samples), a.channels(), a.Rate)
}

func (a Audio) LogValue() slog.Value { return slog.StringValue(a.String()) }

func (a Audio) channels() int { return max(a.Channels, 1) }

func (a Audio) check() error {
	switch {
	case a.Rate < 1 || a.Rate > math.MaxInt32:
		return fmt.Errorf("audio: the rate must be at least 1 Hz, got %d", a.Rate)
	case a.Channels < 0 || a.Channels > 255:
		return fmt.Errorf("audio: the channels must be 1 to 255, got %d", a.Channels)
	case len(a.Samples)%a.channels() != 0:
		return fmt.Errorf("audio: %d samples cannot be divided among %d channels", len(a.Samples), a.channels())
	case len(a.Samples) > math.MaxInt32/4:
		return fmt.Errorf("audio: %d samples are more than a WAV file holds", len(a.Samples))
	}
	return nil
}

func (a Audio) wav() ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	const header, sample = 44, 2
	size, moment := len(a.Samples)*sample, a.channels()*sample
	le := binary.LittleEndian
	b := make([]byte, 0, header+size)
	b = append(b, "RIFF"...)
	b = le.AppendUint32(b, uint32(header-8+size))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, 1) // PCM
	b = le.AppendUint16(b, uint16(a.channels()))
	b = le.AppendUint32(b, uint32(a.Rate))
	b = le.AppendUint32(b, uint32(a.Rate*moment))
	b = le.AppendUint16(b, uint16(moment))
	b = le.AppendUint16(b, 8*sample)
	b = append(b, "data"...)
	b = le.AppendUint32(b, uint32(size))
	for _, s := range a.Samples {
		if s != s {
			s = 0
		}
		b = le.AppendUint16(b, uint16(int16(math.Round(float64(max(-1, min(1, s)))*math.MaxInt16))))
	}
	return b, nil
}
