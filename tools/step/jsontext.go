package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// toJSON writes a value compactly, keys sorted, without escapes for HTML.
func toJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // only values read from JSON come here
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// fromJSON reads exactly one value; numbers keep their digits.
func fromJSON(text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return value, nil
}

// wholeNumbers writes 2.0 as 2 wherever it stands: kfp's compiler makes a double of every number, its backend undoes it.
func wholeNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if whole, ok := wholeNumber(v); ok {
			return whole
		}
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = wholeNumbers(v[key])
		}
	}
	return value
}

// maxDigits bounds how long a number may get when 1e30 is written out.
const maxDigits = 40

// wholeNumber gives the digits of a number without a fraction.
func wholeNumber(number json.Number) (json.Number, bool) {
	float, err := number.Float64()
	if err != nil || float > 1e30 || float < -1e30 {
		return number, false
	}
	exact, ok := new(big.Rat).SetString(number.String())
	if !ok || !exact.IsInt() || len(exact.Num().String()) > maxDigits {
		return number, false
	}
	return json.Number(exact.Num().String()), true
}

func sortedNames[V any](of map[string]V) []string {
	return slices.Sorted(maps.Keys(of))
}
