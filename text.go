package hone

import "hone/model"

// Text is a prompt: one message from the user's side, a part for each text.
func Text(texts ...string) []model.Message {
	m := model.Message{Role: model.User}
	for _, text := range texts {
		m.Parts = append(m.Parts, model.Part{Text: text})
	}
	return []model.Message{m}
}
