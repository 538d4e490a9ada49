CREATE TABLE jizai_journal ( key TEXT PRIMARY KEY, session TEXT, owner TEXT NOT NULL, holder TEXT NOT NULL, n INTEGER NOT NULL, run INTEGER NOT NULL, state INTEGER NOT NULL, base INTEGER NOT NULL, last INTEGER NOT NULL, events INTEGER NOT NULL, waiting INTEGER NOT NULL, due INTEGER, keep INTEGER, expires INTEGER, writer TEXT NOT NULL, head TEXT NOT NULL ) WITHOUT ROWID;
CREATE TABLE jizai_journal_entry ( key TEXT NOT NULL, first INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (key, first, part) ) WITHOUT ROWID;
CREATE TABLE jizai_journal_event ( key TEXT NOT NULL, run INTEGER NOT NULL, first INTEGER NOT NULL, part INTEGER NOT NULL, last INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (key, run, first, part) ) WITHOUT ROWID;
CREATE INDEX jizai_journal_due ON jizai_journal (due) WHERE due IS NOT NULL;
CREATE INDEX jizai_journal_expires ON jizai_journal (expires) WHERE expires IS NOT NULL;
CREATE INDEX jizai_journal_owner ON jizai_journal (owner, session) WHERE session IS NOT NULL;
INSERT INTO jizai_journal VALUES ('2klWorPIjzEBxCXMi3fqdG', NULL, 'guest', 'd2ac4231-7716-45c6-8b6b-5ae29623297d', 1, 0, 0, 1, 0, 0, 0, 1800000179000, NULL, NULL, 'dee04e48-18e1-47ed-ae27-49c2e7da976f', '{"format":1,"id":"2klWorPIjzEBxCXMi3fqdG","owner":"guest","report":{"run":"xvPD2W9jBE3j6pzabcwPxl-1","session":"lost","owner":"guest","at":1800000059000}}');
INSERT INTO jizai_journal VALUES ('5-qnT93Fcrt1mh2dOyfT8i', 'finished', 'guest', '8b929e28-1d8e-40de-b472-6392767b1a21', 10, 2, 0, 1, 10, 25, 0, NULL, NULL, NULL, '1b11b234-0c95-4d93-9232-736cb3369f34', '{"format":1,"id":"finished","owner":"guest","last":{"run":"5-qnT93Fcrt1mh2dOyfT8i-2","event":{"type":"run.finished","status":"done","text":"Today it is sunny.","usage":{"input":2,"output":2},"finish":"stop"},"before":2,"at":1800000019000},"readUntil":8}');
INSERT INTO jizai_journal VALUES ('F5QUGv_gzOM1S8W_yREYRD', NULL, 'guest', '5244948b-a7ba-489c-a026-c7327912f573', 2, 0, 0, 1, 0, 0, 0, NULL, 86400000, 1800086459000, 'c1552498-cda9-4021-86b2-256cd5063d57', '{"content":"73c514b3505b2c1a8fdd28c78703570847bdb53f23f04aa6276c85539fc16888","session":"lost","begun":{"run":"xvPD2W9jBE3j6pzabcwPxl-1","session":"lost","after":0}}');
INSERT INTO jizai_journal VALUES ('W1yLGgj4zYmpmpKej4vQSO', 'compacted', 'guest', '150fff0b-e35b-4df0-9b2d-587f814b0fe3', 15, 4, 0, 10, 18, 10, 0, NULL, NULL, NULL, '25837ac9-1c57-4429-af4e-e98d9e461ecb', '{"format":1,"id":"compacted","owner":"guest","compactions":1,"last":{"run":"W1yLGgj4zYmpmpKej4vQSO-4","event":{"type":"run.finished","status":"done","text":"C.","usage":{"input":1,"output":1},"finish":"stop"},"before":3,"at":1800000042000},"readUntil":16}');
INSERT INTO jizai_journal VALUES ('YiBz0DuVM2G0EcbtpkIZdM', 'paused', 'guest', 'a1e0de7e-fb62-49c8-8c1b-ece0af9af157', 5, 1, 1, 1, 4, 19, 0, NULL, NULL, NULL, '6281b6dc-e7f3-4e75-a743-f69dd6a33134', '{"format":1,"id":"paused","run":{"$entry":3},"owner":"guest","readUntil":2}');
INSERT INTO jizai_journal VALUES ('inl2arLgDI7fhch9fSbtJi', 'checking', 'guest', '98c1dfb9-a019-438c-98d4-7433cd35ce7f', 3, 1, 1, 1, 2, 4, 0, NULL, NULL, NULL, '5eef9d71-64fb-4b14-9018-b713d9177dc8', '{"format":2,"id":"checking","run":{"id":"inl2arLgDI7fhch9fSbtJi-1","startedAt":1800000054000,"position":{"at":"prompt","messages":[{"role":"user","parts":[{"type":"text","text":"Check"}]}]},"before":0,"counters":{"turns":0,"calls":0,"continuations":0,"batches":0,"outputs":0,"cuts":0},"usage":{"input":0,"output":0},"state":[],"answers":[],"events":4,"exit":{"status":"paused","questions":[{"questions":["Sure?"],"schema":{"type":"object","properties":{"type":{"const":"reply"},"text":{"type":"string"}},"required":["type","text"]}}]}},"owner":"guest","readUntil":1}');
INSERT INTO jizai_journal VALUES ('tBiwKYsW7h6IF8MXVgQa1W', 'choosing', 'guest', 'f8f1d9f6-263b-43ab-b6a8-224f051e5ba9', 2, 1, 1, 1, 2, 4, 0, NULL, NULL, NULL, 'a47dbf74-14b2-41b4-9e66-ebef6970eb34', '{"format":2,"id":"choosing","run":{"id":"tBiwKYsW7h6IF8MXVgQa1W-1","startedAt":1800000050000,"position":{"at":"incoming","messages":[{"role":"user","parts":[{"type":"text","text":"Choose"}]}]},"before":0,"counters":{"turns":0,"calls":0,"continuations":0,"batches":0,"outputs":0,"cuts":0},"usage":{"input":0,"output":0},"state":[],"answers":[],"events":4,"exit":{"status":"paused","questions":[{"questions":["Which one?"],"schema":{"type":"object","properties":{"type":{"const":"reply"},"text":{"type":"string"}},"required":["type","text"]}}]}},"owner":"guest","readUntil":1}');
INSERT INTO jizai_journal VALUES ('xvPD2W9jBE3j6pzabcwPxl', 'lost', 'guest', '6cdb6f85-b4e5-4e70-9189-527cbd35ffa9', 5, 1, 2, 1, 3, 15, 1, 1800000089000, NULL, NULL, '5c3d5a70-5878-4609-b191-7a8bb2265c72', '{"format":1,"id":"lost","run":{"id":"xvPD2W9jBE3j6pzabcwPxl-1","startedAt":1800000059000,"position":{"at":"tools","turn":1,"message":{"role":"assistant","parts":[{"type":"text","text":"I wait."},{"type":"call","id":"call_1","name":"look","input":{"of":"z"}},{"type":"call","id":"call_2","name":"wait","input":{"of":"rain"}}]},"calls":[{"call":{"id":"call_1","name":"look","input":{"of":"z"}},"name":"look","input":{"of":"z"},"state":"ran","raw":{"type":"result","status":"ok","parts":[{"type":"text","text":"Seen z"}],"input":{"of":"z"}}},{"call":{"id":"call_2","name":"wait","input":{"of":"rain"}},"name":"wait","input":{"of":"rain"},"state":"running"}]},"before":0,"counters":{"turns":1,"calls":2,"continuations":0,"batches":1,"outputs":0,"cuts":0},"usage":{"input":1,"output":1},"state":[],"answers":[],"events":15,"request":"F5QUGv_gzOM1S8W_yREYRD","finish":"calls"},"owner":"guest","readUntil":2}');
INSERT INTO jizai_journal VALUES ('yneSlJb7288puOR9LllsQS', NULL, 'guest', '8b1c92b5-47c9-4480-aeb7-ee4784dc3ed0', 2, 0, 0, 1, 0, 0, 0, NULL, 86400000, 1800086415000, '22a79eee-b222-49f3-b52d-0f7d656e1e90', '{"content":"69588890cb61e3c07e1e71a95200c5a192141e3c76288187ddacc5ef95c93ab0","session":"finished","begun":{"run":"5-qnT93Fcrt1mh2dOyfT8i-2","session":"finished","after":0}}');
INSERT INTO jizai_journal_entry VALUES ('5-qnT93Fcrt1mh2dOyfT8i', 1, 0, '{"type":"begun","run":1,"after":0}
');
INSERT INTO jizai_journal_entry VALUES ('5-qnT93Fcrt1mh2dOyfT8i', 2, 0, '{"type":"message","message":{"role":"user","parts":[{"type":"text","text":"Hi"}]}}
');
INSERT INTO jizai_journal_entry VALUES ('5-qnT93Fcrt1mh2dOyfT8i', 3, 0, '{"type":"message","message":{"role":"assistant","parts":[{"type":"text","text":"Hello."}]}}
{"type":"ended","run":1,"as":"done","at":1800000005000}
');
INSERT INTO jizai_journal_entry VALUES ('5-qnT93Fcrt1mh2dOyfT8i', 5, 0, '{"type":"begun","run":2,"after":0,"request":"yneSlJb7288puOR9LllsQS"}
');
INSERT INTO jizai_journal_entry VALUES ('5-qnT93Fcrt1mh2dOyfT8i', 6, 0, '{"type":"message","message":{"role":"user","parts":[{"type":"text","text":"Look"}]}}
');
INSERT INTO jizai_journal_entry VALUES ('5-qnT93Fcrt1mh2dOyfT8i', 7, 0, '{"type":"message","message":{"role":"assistant","parts":[{"type":"call","id":"call_1","name":"look","input":{"of":"x"}}]}}
{"type":"message","message":{"role":"tool","results":[{"callId":"call_1","name":"look","status":"ok","parts":[{"type":"text","text":"Seen x"}]}]}}
');
INSERT INTO jizai_journal_entry VALUES ('5-qnT93Fcrt1mh2dOyfT8i', 9, 0, '{"type":"message","message":{"role":"assistant","parts":[{"type":"reasoning","text":"Hmm."},{"type":"text","text":"Today it is sunny."}]}}
{"type":"ended","run":2,"as":"done","at":1800000019000}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 1, 0, '{"type":"begun","run":1,"after":0}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 2, 0, '{"type":"message","message":{"role":"user","parts":[{"type":"text","text":"A xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}]}}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 3, 0, '{"type":"message","message":{"role":"assistant","parts":[{"type":"text","text":"A."}]}}
{"type":"ended","run":1,"as":"done","at":1800000025000}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 5, 0, '{"type":"begun","run":2,"after":0}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 6, 0, '{"type":"message","message":{"role":"user","parts":[{"type":"text","text":"B xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}]}}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 7, 0, '{"type":"message","message":{"role":"assistant","parts":[{"type":"text","text":"B."}]}}
{"type":"ended","run":2,"as":"done","at":1800000031000}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 9, 0, '{"type":"begun","run":3,"after":0}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 10, 0, '{"type":"base","count":3,"same":1,"kept":2}
{"type":"message","message":{"role":"user","parts":[{"type":"text","text":"A xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}]}}
{"type":"message","message":{"role":"user","parts":[{"type":"text","text":"B xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}]}}
{"type":"message","message":{"role":"assistant","parts":[{"type":"text","text":"B."}]}}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 14, 0, '{"type":"ended","run":3,"as":"done","at":1800000036000}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 15, 0, '{"type":"begun","run":4,"after":0}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 16, 0, '{"type":"message","message":{"role":"user","parts":[{"type":"text","text":"More"}]}}
');
INSERT INTO jizai_journal_entry VALUES ('W1yLGgj4zYmpmpKej4vQSO', 17, 0, '{"type":"message","message":{"role":"assistant","parts":[{"type":"text","text":"C."}]}}
{"type":"ended","run":4,"as":"done","at":1800000042000}
');
INSERT INTO jizai_journal_entry VALUES ('YiBz0DuVM2G0EcbtpkIZdM', 1, 0, '{"type":"begun","run":1,"after":0}
');
INSERT INTO jizai_journal_entry VALUES ('YiBz0DuVM2G0EcbtpkIZdM', 2, 0, '{"type":"message","message":{"role":"user","parts":[{"type":"text","text":"Pay"}]}}
');
INSERT INTO jizai_journal_entry VALUES ('YiBz0DuVM2G0EcbtpkIZdM', 3, 0, '{"type":"value","value":{"id":"YiBz0DuVM2G0EcbtpkIZdM-1","startedAt":1800000043000,"position":{"at":"tools","turn":1,"message":{"role":"assistant","parts":[{"type":"text","text":"I pay."},{"type":"call","id":"call_1","name":"pay","input":{"of":"rent"}},{"type":"call","id":"call_2","name":"look","input":{"of":"y"}}]},"calls":[{"call":{"id":"call_1","name":"pay","input":{"of":"rent"}},"state":"waiting","questions":[{"callId":"call_1","tool":"pay","input":{"of":"rent"},"questions":["Run pay?"]}],"approval":{"name":"pay","input":{"of":"rent"},"parsed":{"of":"rent"},"asked":[{"text":"Run pay?","key":"pay"}],"guards":[]}},{"call":{"id":"call_2","name":"look","input":{"of":"y"}},"state":"done","result":{"callId":"call_2","name":"look","status":"ok","parts":[{"type":"text","text":"Seen y"}]}}]},"before":0,"counters":{"turns":1,"calls":2,"continuations":0,"batches":1,"outputs":0,"cuts":0},"usage":{"input":1,"output":1},"state":[],"answers":[],"events":19,"finish":"calls","exit":{"status":"paused","questions":[{"callId":"call_1","tool":"pay","input":{"of":"rent"},"questions":["Run pay?"],"schema":{"oneOf":[{"type":"object","properties":{"type":{"const":"approve"},"input":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"of":{"type":"string"}},"required":["of"]},"always":{"enum":["tool","input"]}},"required":["type"]},{"type":"object","properties":{"type":{"const":"deny"},"reason":{"type":"string"}},"required":["type"]},{"type":"object","properties":{"type":{"const":"reply"},"text":{"type":"string"}},"required":["type","text"]}]},"suggestions":[{"type":"approve"},{"type":"approve","always":"tool"},{"type":"deny"}]}]}}}
{"type":"ended","run":1,"as":"paused","at":1800000049000}
');
INSERT INTO jizai_journal_entry VALUES ('inl2arLgDI7fhch9fSbtJi', 1, 0, '{"type":"begun","run":1,"after":0}
');
INSERT INTO jizai_journal_entry VALUES ('inl2arLgDI7fhch9fSbtJi', 2, 0, '{"type":"ended","run":1,"as":"paused","at":1800000058000}
');
INSERT INTO jizai_journal_entry VALUES ('tBiwKYsW7h6IF8MXVgQa1W', 1, 0, '{"type":"begun","run":1,"after":0}
');
INSERT INTO jizai_journal_entry VALUES ('tBiwKYsW7h6IF8MXVgQa1W', 2, 0, '{"type":"ended","run":1,"as":"paused","at":1800000053000}
');
INSERT INTO jizai_journal_entry VALUES ('xvPD2W9jBE3j6pzabcwPxl', 1, 0, '{"type":"begun","run":1,"after":0,"request":"F5QUGv_gzOM1S8W_yREYRD"}
');
INSERT INTO jizai_journal_entry VALUES ('xvPD2W9jBE3j6pzabcwPxl', 2, 0, '{"type":"message","message":{"role":"user","parts":[{"type":"text","text":"Wait"}]}}
');
INSERT INTO jizai_journal_entry VALUES ('xvPD2W9jBE3j6pzabcwPxl', 3, 0, '{"type":"mail","id":"125bf0e2-286f-4fd6-8b28-68475fd04b89","mail":{"type":"message","message":{"role":"user","parts":[{"type":"text","text":"By the way"}]}}}
');
INSERT INTO jizai_journal_event VALUES ('5-qnT93Fcrt1mh2dOyfT8i', 1, 1, 0, 11, '{"type":"run.started","run":"5-qnT93Fcrt1mh2dOyfT8i-1","session":"finished","resumed":false}
{"type":"session.opened","source":"new"}
{"type":"prompt.accepted","prompt":{"role":"user","parts":[{"type":"text","text":"Hi"}]}}
{"type":"turn.started","turn":1}
{"type":"model.started","turn":1,"model":"scripted"}
~3,3{"type":"text.delta","turn":1,"part":0,"text":"Hello."}
{"type":"model.finished","turn":1,"finish":"stop","usage":{"input":1,"output":1},"attempts":1}
{"type":"turn.finished","turn":1}
{"type":"session.closed"}
{"type":"run.finished","status":"done","text":"Hello.","usage":{"input":1,"output":1},"finish":"stop"}
');
INSERT INTO jizai_journal_event VALUES ('5-qnT93Fcrt1mh2dOyfT8i', 2, 1, 0, 25, '{"type":"run.started","run":"5-qnT93Fcrt1mh2dOyfT8i-2","session":"finished","resumed":false}
{"type":"session.opened","source":"resume"}
{"type":"prompt.accepted","prompt":{"role":"user","parts":[{"type":"text","text":"Look"}]}}
{"type":"turn.started","turn":1}
{"type":"model.started","turn":1,"model":"scripted"}
{"type":"call.delta","turn":1,"call":"call_1","name":"look","text":"{\"of\":\"x\"}"}
{"type":"call.ready","turn":1,"call":{"id":"call_1","name":"look","input":{"of":"x"}}}
{"type":"model.finished","turn":1,"finish":"calls","usage":{"input":1,"output":1},"attempts":1}
{"type":"tool.started","turn":1,"call":"call_1","name":"look","batch":"5-qnT93Fcrt1mh2dOyfT8i-2:1","index":0}
{"type":"approval.decided","turn":1,"call":"call_1","decision":"allow","by":"policy"}
{"type":"tool.finished","turn":1,"call":"call_1","result":{"callId":"call_1","name":"look","status":"ok","parts":[{"type":"text","text":"Seen x"}]}}
{"type":"turn.finished","turn":1}
{"type":"turn.started","turn":2}
{"type":"model.started","turn":2,"model":"scripted"}
~2,2{"type":"reasoning.delta","turn":2,"part":0,"text":"Hmm."}
~2,4,6,3,3{"type":"text.delta","turn":2,"part":1,"text":"Today it is sunny."}
{"type":"model.finished","turn":2,"finish":"stop","usage":{"input":1,"output":1},"attempts":1}
{"type":"turn.finished","turn":2}
{"type":"session.closed"}
{"type":"run.finished","status":"done","text":"Today it is sunny.","usage":{"input":2,"output":2},"finish":"stop"}
');
INSERT INTO jizai_journal_event VALUES ('W1yLGgj4zYmpmpKej4vQSO', 1, 1, 0, 10, '{"type":"run.started","run":"W1yLGgj4zYmpmpKej4vQSO-1","session":"compacted","resumed":false}
{"type":"session.opened","source":"new"}
{"type":"prompt.accepted","prompt":{"role":"user","parts":[{"type":"text","text":"A xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}]}}
{"type":"turn.started","turn":1}
{"type":"model.started","turn":1,"model":"scripted"}
{"type":"text.delta","turn":1,"part":0,"text":"A."}
{"type":"model.finished","turn":1,"finish":"stop","usage":{"input":1,"output":1},"attempts":1}
{"type":"turn.finished","turn":1}
{"type":"session.closed"}
{"type":"run.finished","status":"done","text":"A.","usage":{"input":1,"output":1},"finish":"stop"}
');
INSERT INTO jizai_journal_event VALUES ('W1yLGgj4zYmpmpKej4vQSO', 2, 1, 0, 10, '{"type":"run.started","run":"W1yLGgj4zYmpmpKej4vQSO-2","session":"compacted","resumed":false}
{"type":"session.opened","source":"resume"}
{"type":"prompt.accepted","prompt":{"role":"user","parts":[{"type":"text","text":"B xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}]}}
{"type":"turn.started","turn":1}
{"type":"model.started","turn":1,"model":"scripted"}
{"type":"text.delta","turn":1,"part":0,"text":"B."}
{"type":"model.finished","turn":1,"finish":"stop","usage":{"input":1,"output":1},"attempts":1}
{"type":"turn.finished","turn":1}
{"type":"session.closed"}
{"type":"run.finished","status":"done","text":"B.","usage":{"input":1,"output":1},"finish":"stop"}
');
INSERT INTO jizai_journal_event VALUES ('W1yLGgj4zYmpmpKej4vQSO', 3, 1, 0, 6, '{"type":"run.started","run":"W1yLGgj4zYmpmpKej4vQSO-3","session":"compacted","resumed":false}
{"type":"session.opened","source":"resume"}
{"type":"compact.started","trigger":"manual"}
{"type":"compact.finished","trigger":"manual","status":"compacted","before":180,"after":173}
{"type":"session.closed"}
{"type":"run.finished","status":"done","text":"","usage":{"input":0,"output":0}}
');
INSERT INTO jizai_journal_event VALUES ('W1yLGgj4zYmpmpKej4vQSO', 4, 1, 0, 10, '{"type":"run.started","run":"W1yLGgj4zYmpmpKej4vQSO-4","session":"compacted","resumed":false}
{"type":"session.opened","source":"resume"}
{"type":"prompt.accepted","prompt":{"role":"user","parts":[{"type":"text","text":"More"}]}}
{"type":"turn.started","turn":1}
{"type":"model.started","turn":1,"model":"scripted"}
{"type":"text.delta","turn":1,"part":0,"text":"C."}
{"type":"model.finished","turn":1,"finish":"stop","usage":{"input":1,"output":1},"attempts":1}
{"type":"turn.finished","turn":1}
{"type":"session.closed"}
{"type":"run.finished","status":"done","text":"C.","usage":{"input":1,"output":1},"finish":"stop"}
');
INSERT INTO jizai_journal_event VALUES ('YiBz0DuVM2G0EcbtpkIZdM', 1, 1, 0, 2, '{"type":"run.started","run":"YiBz0DuVM2G0EcbtpkIZdM-1","session":"paused","resumed":false}
{"type":"session.opened","source":"new"}
');
INSERT INTO jizai_journal_event VALUES ('YiBz0DuVM2G0EcbtpkIZdM', 1, 3, 0, 3, '{"type":"prompt.accepted","prompt":{"role":"user","parts":[{"type":"text","text":"Pay"}]}}
');
INSERT INTO jizai_journal_event VALUES ('YiBz0DuVM2G0EcbtpkIZdM', 1, 4, 0, 16, '{"type":"turn.started","turn":1}
{"type":"model.started","turn":1,"model":"scripted"}
{"type":"text.delta","turn":1,"part":0,"text":"I "}
{"type":"text.delta","turn":1,"part":0,"text":"pay."}
{"type":"call.delta","turn":1,"call":"call_1","name":"pay","text":"{\"of\":\"rent\"}"}
{"type":"call.ready","turn":1,"call":{"id":"call_1","name":"pay","input":{"of":"rent"}}}
{"type":"call.delta","turn":1,"call":"call_2","name":"look","text":"{\"of\":\"y\"}"}
{"type":"call.ready","turn":1,"call":{"id":"call_2","name":"look","input":{"of":"y"}}}
{"type":"model.finished","turn":1,"finish":"calls","usage":{"input":1,"output":1},"attempts":1}
{"type":"tool.started","turn":1,"call":"call_1","name":"pay","batch":"YiBz0DuVM2G0EcbtpkIZdM-1:1","index":0}
{"type":"approval.asked","turn":1,"call":"call_1","callId":"call_1","tool":"pay","input":{"of":"rent"},"questions":["Run pay?"]}
{"type":"tool.started","turn":1,"call":"call_2","name":"look","batch":"YiBz0DuVM2G0EcbtpkIZdM-1:1","index":1}
{"type":"approval.decided","turn":1,"call":"call_2","decision":"allow","by":"policy"}
');
INSERT INTO jizai_journal_event VALUES ('YiBz0DuVM2G0EcbtpkIZdM', 1, 17, 0, 19, '{"type":"tool.finished","turn":1,"call":"call_2","result":{"callId":"call_2","name":"look","status":"ok","parts":[{"type":"text","text":"Seen y"}]}}
{"type":"session.closed"}
{"type":"run.paused","questions":[{"callId":"call_1","tool":"pay","input":{"of":"rent"},"questions":["Run pay?"],"schema":{"oneOf":[{"type":"object","properties":{"type":{"const":"approve"},"input":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"of":{"type":"string"}},"required":["of"]},"always":{"enum":["tool","input"]}},"required":["type"]},{"type":"object","properties":{"type":{"const":"deny"},"reason":{"type":"string"}},"required":["type"]},{"type":"object","properties":{"type":{"const":"reply"},"text":{"type":"string"}},"required":["type","text"]}]},"suggestions":[{"type":"approve"},{"type":"approve","always":"tool"},{"type":"deny"}]}],"usage":{"input":1,"output":1}}
');
INSERT INTO jizai_journal_event VALUES ('inl2arLgDI7fhch9fSbtJi', 1, 1, 0, 2, '{"type":"run.started","run":"inl2arLgDI7fhch9fSbtJi-1","session":"checking","resumed":false}
{"type":"session.opened","source":"new"}
');
INSERT INTO jizai_journal_event VALUES ('inl2arLgDI7fhch9fSbtJi', 1, 3, 0, 4, '{"type":"session.closed"}
{"type":"run.paused","questions":[{"questions":["Sure?"],"schema":{"type":"object","properties":{"type":{"const":"reply"},"text":{"type":"string"}},"required":["type","text"]}}],"usage":{"input":0,"output":0}}
');
INSERT INTO jizai_journal_event VALUES ('tBiwKYsW7h6IF8MXVgQa1W', 1, 1, 0, 2, '{"type":"run.started","run":"tBiwKYsW7h6IF8MXVgQa1W-1","session":"choosing","resumed":false}
{"type":"session.opened","source":"new"}
');
INSERT INTO jizai_journal_event VALUES ('tBiwKYsW7h6IF8MXVgQa1W', 1, 3, 0, 4, '{"type":"session.closed"}
{"type":"run.paused","questions":[{"questions":["Which one?"],"schema":{"type":"object","properties":{"type":{"const":"reply"},"text":{"type":"string"}},"required":["type","text"]}}],"usage":{"input":0,"output":0}}
');
INSERT INTO jizai_journal_event VALUES ('xvPD2W9jBE3j6pzabcwPxl', 1, 1, 0, 2, '{"type":"run.started","run":"xvPD2W9jBE3j6pzabcwPxl-1","session":"lost","resumed":false}
{"type":"session.opened","source":"new"}
');
INSERT INTO jizai_journal_event VALUES ('xvPD2W9jBE3j6pzabcwPxl', 1, 3, 0, 3, '{"type":"prompt.accepted","prompt":{"role":"user","parts":[{"type":"text","text":"Wait"}]}}
');
INSERT INTO jizai_journal_event VALUES ('xvPD2W9jBE3j6pzabcwPxl', 1, 4, 0, 15, '{"type":"turn.started","turn":1}
{"type":"model.started","turn":1,"model":"scripted"}
{"type":"text.delta","turn":1,"part":0,"text":"I wait."}
{"type":"call.delta","turn":1,"call":"call_1","name":"look","text":"{\"of\":\"z\"}"}
{"type":"call.ready","turn":1,"call":{"id":"call_1","name":"look","input":{"of":"z"}}}
{"type":"call.delta","turn":1,"call":"call_2","name":"wait","text":"{\"of\":\"rain\"}"}
{"type":"call.ready","turn":1,"call":{"id":"call_2","name":"wait","input":{"of":"rain"}}}
{"type":"model.finished","turn":1,"finish":"calls","usage":{"input":1,"output":1},"attempts":1}
{"type":"tool.started","turn":1,"call":"call_1","name":"look","batch":"xvPD2W9jBE3j6pzabcwPxl-1:1","index":0}
{"type":"approval.decided","turn":1,"call":"call_1","decision":"allow","by":"policy"}
{"type":"tool.started","turn":1,"call":"call_2","name":"wait","batch":"xvPD2W9jBE3j6pzabcwPxl-1:1","index":1}
{"type":"approval.decided","turn":1,"call":"call_2","decision":"allow","by":"policy"}
');
