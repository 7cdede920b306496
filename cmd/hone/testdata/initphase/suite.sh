#!/bin/bash
# The suite of a scripted verifier for the specification that init phase writes.
url=${DEV_URL:-http://localhost:3000}

ask() { # method, path, body: sets code and body
  local out
  out=$(curl -s -m 10 -X "$1" ${3+-d "$3"} -w '\n%{http_code}' "$url$2")
  code=${out##*$'\n'} body=$(tr -d ' \n' <<< "${out%$'\n'*}")
}
wants() { # contract, method, path, expected code, expected body, sent body
  ask "$2" "$3" ${6+"$6"}
  if [ "$code" != "$4" ] || [[ $body != $5 ]]; then
    printf 'SPEC: %s\nINPUT: %s %s %s\nOBSERVED: %s %s\n\n' "$1" "$2" "$3" "${6-}" "$code" "$body" >> failed_specs.md
  fi
}

wants 'GET /health → 200 {status: "ok"}' GET /health 200 '{"status":"ok"*}'
wants 'POST /notes {text: ""} → 400' POST /notes 400 '*' '{"text": ""}'
wants 'POST /notes {no text} → 400' POST /notes 400 '*' '{}'
wants 'POST /notes (body is not JSON) → 400' POST /notes 400 '*' 'milk'
wants 'GET /notes/{unknown id} → 404' GET /notes/nobody 404 '*'
wants 'DELETE /notes/{unknown id} → 404' DELETE /notes/nobody 404 '*'

wants 'FLOW: write-read-remove, POST /notes {text: "buy milk"} → 201 {id}' POST /notes 201 '{"id":"*"}' '{"text": "buy milk"}'
id=$(sed 's/.*"id":"\([^"]*\)".*/\1/' <<< "$body")
wants 'FLOW: write-read-remove, GET /notes/{id} → 200 {id, text: "buy milk"}' GET "/notes/$id" 200 '*"text":"buymilk"*'
wants 'FLOW: write-read-remove, DELETE /notes/{id} → 204' DELETE "/notes/$id" 204 ''
wants 'FLOW: write-read-remove, GET /notes/{id} → 404' GET "/notes/$id" 404 '*'
