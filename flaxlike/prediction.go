package flaxlike

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
)

// Prediction has a model's outputs for examples, in their order along the first axis. It keeps the model's calibration,
// thresholds and class names. An only output needs no name.
type Prediction struct {
	outputs map[string]data.Array
	of      map[string]answering
	given   []float64
}

func (p Prediction) Len() int {
	for _, a := range p.outputs {
		return a.Len()
	}
	return 0
}

// Gather returns the answers for the given examples.
func (p Prediction) Gather(rows []int) (Prediction, error) {
	for _, r := range rows {
		if n := p.Len(); r < 0 || r >= n {
			return Prediction{}, fmt.Errorf("flaxlike: gather example %d of a prediction of %d examples", r, n)
		}
	}
	all := map[string]data.Array{}
	for name, a := range p.outputs {
		all[name] = a.Gather(rows)
	}
	p.outputs = all
	return p, nil
}

// Outputs returns the outputs' names, sorted.
func (p Prediction) Outputs() []string { return slices.Sorted(maps.Keys(p.outputs)) }

// Output returns an output of the network: logits if it ends without a softmax or sigmoid. After
// [Prediction.WithOutputs] those of classes are probabilities.
func (p Prediction) Output(output ...string) (data.Array, error) {
	_, a, _, err := p.find("output", output...)
	return a, err
}

// Kind returns an output's kind: "classes" (one of several), "binary" (one of two; the output is the probability of
// class 1 or its logit), "multi-label" (any number of classes), "numbers" (a loss of numbers, like mse), or "unknown"
// (no loss by name).
func (p Prediction) Kind(output ...string) (string, error) {
	_, a, of, err := p.find("kind", output...)
	if err != nil {
		return "", err
	}
	return of.odds.kindOf(lastAxis(a)), nil
}

// Probabilities returns the probabilities of an output of classes, in its shape: calibrated ([Model.Calibrate]), by a
// softmax over the last axis for one of several classes, or a sigmoid for binary_crossentropy. An output that already
// has probabilities is unchanged. NaN and infinity are errors. An output of another loss is an [ErrNoProbabilities].
func (p Prediction) Probabilities(output ...string) (data.Array, error) {
	return p.answer("probabilities", func(a data.Array, of answering) (data.Array, error) {
		numbers, err := finiteIn(a)
		if err != nil || of.odds == softmaxed || of.odds == sigmoided {
			return a, err
		}
		flat, width := make([]float32, len(numbers)), lastAxis(a)
		for at := 0; at < len(numbers); at += width {
			for i, v := range probabilitiesOf(numbers[at:at+width], of.odds, of.calibration) {
				flat[at+i] = float32(v)
			}
		}
		return data.Array{Flat: flat, Dims: a.Dims}, nil
	}, output...)
}

// Classes returns the examples' classes as int32: [examples], or [examples, classes] with 0 or 1 if an example may have
// several; outputs of sequences add the axes of their positions, also masked ones.
//
// Of several classes it is the likeliest. Otherwise it is 1 if the probability is above the threshold: that of
// [Prediction.WithThresholds], of [Model.ChooseThresholds], or 0.5. NaN and infinity are errors.
func (p Prediction) Classes(output ...string) (data.Array, error) {
	return p.answer("classes", p.classes, output...)
}

func (p Prediction) classes(a data.Array, of answering) (data.Array, error) {
	numbers, err := finiteIn(a)
	if err != nil {
		return a, err
	}
	width, flat := lastAxis(a), make([]int32, 0, len(numbers))
	narrow := a.Dims[:max(1, len(a.Dims)-1)]
	if of.odds == softmax || of.odds == softmaxed {
		if len(p.given) > 0 {
			return a, errors.New("thresholds are given, but each example has exactly one of several classes, the likeliest: leave them out")
		}
		for at := 0; at < len(numbers); at += width {
			best := 0
			for i, v := range numbers[at : at+width] {
				if v > numbers[at+best] {
					best = i
				}
			}
			flat = append(flat, int32(best))
		}
		return data.Array{Flat: flat, Dims: narrow}, nil
	}
	thresholds := p.given
	if len(thresholds) == 0 {
		if thresholds = of.thresholds; of.oldThresholds {
			return a, fmt.Errorf("its thresholds are %w: the model or its calibration has changed since\n  call ChooseThresholds again, or reset to "+
				"0.5 by SetThresholds(%q); then predict again", ErrOutdated, of.output)
		}
	}
	if err := checkThresholds(thresholds); err != nil {
		return a, err
	}
	if len(thresholds) > 1 && len(thresholds) != width {
		return a, fmt.Errorf("there are %d thresholds for %d classes: expected one, or one for each", len(thresholds), width)
	}
	for at := 0; at < len(numbers); at += width {
		for i, v := range probabilitiesOf(numbers[at:at+width], of.odds, of.calibration) {
			threshold, class := 0.5, int32(0)
			if len(thresholds) > 0 {
				threshold = thresholds[min(i, len(thresholds)-1)]
			}
			if v > threshold {
				class = 1
			}
			flat = append(flat, class)
		}
	}
	if width > 1 {
		narrow = a.Dims
	}
	return data.Array{Flat: flat, Dims: narrow}, nil
}

// Labels returns each example's class names ([WithClasses]) or numbers: one, any number for several classes, or one
// per position of a sequence.
func (p Prediction) Labels(output ...string) ([][]string, error) {
	classes, err := p.Classes(output...)
	if err != nil {
		return nil, err
	}
	_, a, of, err := p.find("labels", output...)
	if err != nil {
		return nil, err
	}
	flat := classes.Flat.([]int32)
	labels, each := make([][]string, classes.Len()), len(flat)/max(1, classes.Len())
	several := of.odds.kindOf(lastAxis(a)) == "multi-label"
	for i := range labels {
		labels[i] = []string{}
		for k, class := range flat[i*each : (i+1)*each] {
			switch {
			case !several:
				labels[i] = append(labels[i], of.className(int(class)))
			case class == 1:
				labels[i] = append(labels[i], of.className(k%lastAxis(a)))
			}
		}
	}
	return labels, nil
}

// ClassNames returns an output's class names in number order, or the numbers. A binary output has two.
func (p Prediction) ClassNames(output ...string) ([]string, error) {
	var names []string
	_, err := p.answer("class names", func(a data.Array, of answering) (data.Array, error) {
		n := lastAxis(a)
		if of.odds.kindOf(n) == "binary" {
			n = 2
		}
		for class := range n {
			names = append(names, of.className(class))
		}
		return a, nil
	}, output...)
	return names, err
}

// WithThresholds returns a prediction with other thresholds for binary and multi-label outputs: one for all classes, or
// one for each; none for the model's.
func (p Prediction) WithThresholds(thresholds ...float64) Prediction {
	p.given = slices.Clone(thresholds)
	return p
}

// WithOutputs returns a prediction of these outputs instead of the model's, as several models' means, with the
// threshold 0.5. Outputs of classes are probabilities. It keeps the arrays.
func (p Prediction) WithOutputs(outputs map[string]data.Array) (Prediction, error) {
	q := Prediction{outputs: maps.Clone(outputs), of: map[string]answering{}}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		of, known := p.of[name]
		a := outputs[name]
		err := a.Check()
		switch {
		case !known:
			err = fmt.Errorf("%w; the prediction has %q", errUnknownName, p.Outputs())
		case err != nil:
		case len(a.Dims) == 0 || a.Len() != q.Len():
			err = fmt.Errorf("it has dims %v, expected the same number of examples on the first axis of all outputs", a.Dims)
		case of.odds != noOdds && of.odds != oddsUnknown:
			var numbers []float64
			numbers, err = finiteIn(a)
			if at := slices.IndexFunc(numbers, func(v float64) bool { return v < -rounding || v > 1+rounding }); at >= 0 {
				err = fmt.Errorf("it has %v, expected probabilities, 0 to 1", numbers[at])
			}
		}
		if err != nil {
			return Prediction{}, fmt.Errorf("flaxlike: with outputs: output %q: %w", name, err)
		}
		q.of[name] = answering{output: name, odds: of.odds.decided(), names: of.names}
	}
	return q, nil
}

// Answers converts the outputs for clients, by the rules of [Model.Answer].
func (p Prediction) Answers() (map[string]data.Array, error) {
	all, errs := map[string]data.Array{}, graphs.OutputErrors{}
	give := func(name string, a data.Array, err error) {
		if all[name] = a; err != nil {
			delete(all, name)
			errs[name] = err
		}
	}
	for _, name := range p.Outputs() {
		of := p.of[name]
		if of.odds == noOdds || of.odds == oddsUnknown {
			all[name] = p.outputs[name]
			continue
		}
		probabilities, err := p.Probabilities(name)
		give(name+"_probability", probabilities, err)
		classes, err := p.Classes(name)
		if err == nil && of.names != nil {
			numbers, width := classes.Flat.([]int32), lastAxis(p.outputs[name])
			several := of.odds.kindOf(width) == "multi-label"
			texts := make([]string, len(numbers))
			for i, class := range numbers {
				switch {
				case !several:
					texts[i] = of.className(int(class))
				case class == 1:
					texts[i] = of.className(i % width)
				}
			}
			classes.Flat = texts
		}
		give(name+"_class", classes, err)
	}
	if len(errs) > 0 {
		return all, errs
	}
	return all, nil
}

func (p Prediction) answer(what string, f func(a data.Array, of answering) (data.Array, error), output ...string) (data.Array, error) {
	name, a, of, err := p.find(what, output...)
	if err != nil {
		return a, err
	}
	switch {
	case of.odds == noOdds:
		err = fmt.Errorf("its loss is for numbers, not for classes: %w\n  use Output for the numbers", ErrNoProbabilities)
	case of.odds == oddsUnknown:
		err = fmt.Errorf("no loss by name says whether its numbers are logits: %w\n  end the network with nn.Activation(\"softmax\") or "+
			"nn.Activation(\"sigmoid\"), or give New a crossentropy by its name (WithLoss); Output has the numbers", ErrNoProbabilities)
	case of.oldCalibration:
		err = fmt.Errorf("its calibration is %w: the model has changed since\n  Calibrate it again, or remove the calibration by SetCalibration(%q); "+
			"then predict again", ErrOutdated, name)
	default:
		a, err = f(a, of)
	}
	if err != nil {
		return data.Array{}, fmt.Errorf("flaxlike: %s: output %q: %w", what, name, err)
	}
	return a, nil
}

func (p Prediction) find(what string, output ...string) (string, data.Array, answering, error) {
	names, name := p.Outputs(), ""
	var err error
	switch {
	case len(names) == 0:
		err = errors.New("the prediction is empty: it is the zero value, or was returned with an error")
	case len(output) > 1:
		err = fmt.Errorf("the outputs %q are given: expected one", output)
	case len(output) == 1 && output[0] != "":
		name = output[0]
		if _, ok := p.outputs[name]; !ok {
			err = fmt.Errorf("output %q: %w; the model has %q", name, errUnknownName, names)
		}
	case len(names) > 1:
		err = fmt.Errorf("the model has the outputs %q: give the name of one", names)
	default:
		name = names[0]
	}
	if err != nil {
		return "", data.Array{}, answering{}, fmt.Errorf("flaxlike: %s: %w", what, err)
	}
	return name, p.outputs[name], p.of[name], nil
}
