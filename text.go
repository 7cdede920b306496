package hone

import "hone/model"

// Text returns a prompt: one message of the user, with one part for each text.
func Text(texts ...string) []model.Message {
	m := model.Message{Role: model.User}
	for _, text := range texts {
		m.Parts = append(m.Parts, model.Part{Text: text})
	}
	return []model.Message{m}
}
