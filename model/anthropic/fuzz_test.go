package anthropic

import (
	"encoding/json"
	"io"
	"testing"

	"hone/model"
)

// FuzzRead tests that no response makes the reader panic or passes as complete
// without the message's end, and that the journal does not change what is sent
// back.
func FuzzRead(f *testing.F) {
	const end = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"
	block := func(start, delta string) string {
		return "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":" + start + "}\n\n" +
			"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":" + delta + "}\n\n" +
			"data: {\"type\":\"content_block_stop\",\"index\":0}\n\n" + end
	}
	f.Add(block(`{"type":"text","text":""}`, `{"type":"text_delta","text":"ü"}`))
	f.Add(block(`{"type":"tool_use","id":"a","name":"b","input":{}}`, `{"type":"input_json_delta","partial_json":"{"}`))
	f.Add(block(`{"type":"thinking","thinking":"<"}`, `{"type":"signature_delta","signature":"a"}`))
	f.Add("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n")
	f.Add(end)
	f.Fuzz(func(t *testing.T, body string) {
		r, ended := &reader{}, false
		frames := model.Framer{Event: func(_ string, data []byte) {
			if !ended {
				_, err := r.Add(data)
				ended = err != nil && err != io.EOF
			}
		}}
		frames.Write([]byte(body))
		reply, err := r.Reply(false)
		if frames.End() || ended || err != nil {
			return
		}
		if reply.Finish == "" {
			t.Fatalf("read as %+v", reply)
		}
		recorded, err := json.Marshal(reply)
		if err != nil {
			t.Fatal(err)
		}
		var restored model.Reply
		if err := json.Unmarshal(recorded, &restored); err != nil {
			t.Fatal(err)
		}
		if a, b := sent(t, reply), sent(t, restored); a != b {
			t.Errorf("sent back as\n%s\nand, from the journal, as\n%s", a, b)
		}
	})
}

func sent(t *testing.T, reply model.Reply) string {
	t.Helper()
	body, err := model.EncodeJSON(encode("claude", model.Request{
		Messages: []model.Message{{Role: model.Assistant, Parts: reply.Parts}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
