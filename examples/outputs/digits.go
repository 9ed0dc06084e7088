package main

import "github.com/lazo-ml/lazo/data"

// digits adds a one-hot colour to each digit. The rule: red is even, green is odd, or blue is at least 5.
func digits() (training, test *data.Set, err error) {
	training, test, err = data.Digits()
	if err == nil {
		training, err = coloured(training)
	}
	if err == nil {
		test, err = coloured(test)
	}
	return training, test, err
}

func coloured(set *data.Set) (*data.Set, error) {
	images, labels := set.Fields()[0].Array, set.Fields()[1].Array
	pixels, digit, n := images.Flat.([]float32), labels.Flat.([]int32), set.Len()
	colour, ink, rule := make([]float32, 3*n), make([]float32, n), make([]float32, n)
	for i, d := range digit {
		c := i % 3
		colour[3*i+c] = 1
		for _, v := range pixels[64*i : 64*(i+1)] {
			ink[i] += v / 64
		}
		if []bool{d%2 == 0, d%2 == 1, d >= 5}[c] {
			rule[i] = 1
		}
	}
	return data.New(data.Named("image", pixels, images.Dims...), data.Named("colour", colour, n, 3),
		data.Named("digit", digit, n), data.Named("ink", ink, n), data.Named("rule", rule, n))
}
