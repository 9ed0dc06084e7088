package tensorboard

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"

	"github.com/lazo-ml/lazo/loop"
)

func encode(tag string, e loop.Entry) (message, error) {
	if e.IsNumber() {
		return scalar(tag, e.Value)
	}
	what, err := e.Any()
	if err != nil {
		return nil, err
	}
	switch what := what.(type) {
	case image.Image:
		return pictures(tag, what)
	case []image.Image:
		return pictures(tag, what...)
	case Audio:
		return sounds(tag, what)
	case []Audio:
		return sounds(tag, what...)
	case string:
		return value(tag, "text", nil, ofTensors, texts([][]byte{utf8Text(what)})), nil
	case []string:
		rows := make([][]byte, len(what))
		for i, row := range what {
			rows[i] = utf8Text(row)
		}
		return value(tag, "text", nil, ofTensors, texts(rows, len(rows))), nil
	case Histogram:
		return histogram(tag, what), nil
	}
	if m, err := scalar(tag, e.Value); err == nil {
		return m, nil
	}
	return nil, nil
}

func scalar(tag string, v loop.Value) (message, error) {
	f, err := v.Float()
	if err != nil {
		return nil, err
	}
	return number(tag, f), nil
}

func utf8Text(s string) []byte { return []byte(strings.ToValidUTF8(s, "\ufffd")) }

func pictures(tag string, all ...image.Image) (message, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var parts [][]byte
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	for i, picture := range all {
		if picture == nil {
			return nil, errors.New("a nil image")
		}
		size, first := picture.Bounds().Size(), all[0].Bounds().Size()
		if size != first {
			return nil, fmt.Errorf("image %d of a list is %v, the first %v: they must be of one size", i+1, size, first)
		}
		if i == 0 {
			parts = append(parts, fmt.Append(nil, size.X), fmt.Append(nil, size.Y))
		}
		var b bytes.Buffer
		if err := encoder.Encode(&b, picture); err != nil {
			return nil, err
		}
		parts = append(parts, b.Bytes())
	}
	return value(tag, "images", nil, ofBlobs, texts(parts, len(parts))), nil
}

// sounds omits labels: TensorBoard's Python loader cannot read empty ones.
func sounds(tag string, all ...Audio) (message, error) {
	if len(all) == 0 {
		return nil, nil
	}
	const wav = 11
	var parts [][]byte
	for _, a := range all {
		b, err := a.wav()
		if err != nil {
			return nil, err
		}
		parts = append(parts, b)
	}
	return value(tag, "audio", message{}.integer(2, wav), ofBlobs, texts(parts, len(parts))), nil
}

func histogram(tag string, h Histogram) message {
	if len(h.Buckets) == 0 {
		return nil
	}
	var numbers []float64
	for _, b := range h.Buckets {
		numbers = append(numbers, b.Low, b.High, b.Count)
	}
	return value(tag, "histograms", nil, ofTensors, doubles(numbers, len(h.Buckets), 3))
}
